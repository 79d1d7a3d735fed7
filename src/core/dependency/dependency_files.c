/* SPDX-License-Identifier: Apache-2.0 */
#include "core/dependency/dependency_files.h"

#include "blob/digest.h"
#include "store/template/store_dependency_file.h"

#include <errno.h>
#include <string.h>

json_t *dependency_files_new_set(const struct dependency_spec *spec)
{
	json_t *set = dependency_set_new(spec);

	for (size_t i = 0; i < DEPENDENCY_FILES; i++) {
		struct digest digest;

		if (!spec->files[i])
			continue;
		digest_of(spec->files[i], strlen(spec->files[i]), &digest);
		json_object_set_new(set, dependency_file_names[i], json_string(digest.text));
	}
	return set;
}

int dependency_files_keep(struct engine *engine, const struct owner *owner,
	const struct dependency_spec *spec, struct err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < DEPENDENCY_FILES; i++) {
		const char *text = spec->files[i];
		struct digest digest;

		if (!text)
			continue;
		digest_of(text, strlen(text), &digest);
		r = store_dependency_file_put(
			engine_store(engine), owner, digest.text, text, strlen(text), err);
	}
	return r;
}

int dependency_files_load(struct engine *engine, const struct owner *owner, const json_t *set,
	enum dependency_file file, char **ret_text, size_t *ret_len, struct err *err)
{
	const char *name = dependency_file_names[file];
	const char *digest = json_string_value(json_object_get(set, name));
	int r = store_dependency_file_get(
		engine_store(engine), owner, digest, ret_text, ret_len, err);

	if (r == -ENOENT)
		return err_explain(err, ERR_NOT_FOUND, "file_not_kept",
			"ask for the packages again, with the file",
			"the text of %s is not kept any more", name);
	return r;
}
