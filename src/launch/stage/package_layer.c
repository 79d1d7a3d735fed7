/* SPDX-License-Identifier: Apache-2.0 */
#include "launch/stage/package_layer.h"

#include "base/log.h"
#include "core/dependency/dependencies.h"
#include "driver/driver.h"

#include <string.h>

/*
 * The directory is entered first, so that the layer stays the same if the sandbox is shown another meanwhile. One program
 * reads what another writes, in large pieces: thousands of small files are there in about half the time of cp.
 */
#define COPY(what, where)                                                                          \
	"read=$({ { TAR_OPTIONS=-b128 tar -cf - " what "; echo $? >&3; } | "                       \
	"TAR_OPTIONS=-b128 tar -C \"" where "\" -xpf - --no-same-owner >&2; } 3>&1) && "           \
	"[ \"$read\" = 0 ]"
static const char copy_node[] = "app=$PWD; rm -rf node_modules && cd " DRIVER_LAYER_PLACE
				"/node && " COPY("node_modules", "$app");
/* pip --target made them: programs are in bin, for an interpreter that knows nothing of the environment. */
static const char copy_python[] =
	"[ ! -e .venv ] && cd " DRIVER_LAYER_PLACE "/python && "
	"python3 -m venv --system-site-packages --without-pip \"$OLDPWD/.venv\" && app=$OLDPWD && "
	"to=$(\"$app/.venv/bin/python3\" -c 'import sysconfig; "
	"print(sysconfig.get_paths()[\"purelib\"])') && " COPY(
		".", "$to") " && "
			    "if [ -d bin ]; then rm -rf \"$to/bin\"; for tool in bin/*; do "
			    "sed \"1s|^#!.*python.*|#!$app/.venv/bin/python3|\" \"$tool\" > "
			    "\"$app/.venv/$tool\" && "
			    "chmod +x \"$app/.venv/$tool\"; done; fi";

/* --- which packages a layer can hold --- */

/* Scripts of the app itself that npm runs when it installs; in a builder its files are not there. */
static bool has_install_script(const json_t *package)
{
	static const char *const names[] = {"preinstall", "install", "postinstall", "prepublish",
		"preprepare", "prepare", "postprepare"};
	const json_t *scripts = json_object_get(package, "scripts");

	for (size_t i = 0; i < array_len(names); i++) {
		if (json_object_get(scripts, names[i]))
			return true;
	}
	return false;
}

static const char *read_node(
	const struct file_set *files, const struct app_part *part, struct package_layer *layer)
{
	json_auto_t *package = file_set_read_json(files, part->dir, "package.json");

	if (!part->lock || strcmp(part->lock, "package-lock.json") != 0)
		return "there is no package-lock.json";
	if (file_set_has(files, part->dir, ".npmrc"))
		return "there is an .npmrc";
	if (json_object_get(package, "workspaces"))
		return "package.json has workspaces";
	if (has_install_script(package))
		return "package.json has scripts that run when packages are installed";
	layer->texts[DEPENDENCY_PACKAGE_JSON] = file_set_read(files, part->dir, "package.json");
	layer->texts[DEPENDENCY_PACKAGE_LOCK] = file_set_read(files, part->dir, part->lock);
	if (!layer->texts[DEPENDENCY_PACKAGE_JSON] || !layer->texts[DEPENDENCY_PACKAGE_LOCK])
		return "package-lock.json is too large";
	if (strstr(layer->texts[DEPENDENCY_PACKAGE_LOCK], "\"link\": true") ||
		strstr(layer->texts[DEPENDENCY_PACKAGE_LOCK], "\"file:"))
		return "package-lock.json names directories of the app";
	return NULL;
}

/* Whether a line of requirements leads to another file of the app. */
static bool names_file(const char *line)
{
	static const char *const begins[] = {
		"-r", "-c", "-e", "--requirement", "--constraint", "--editable", ".", "/"};

	for (size_t i = 0; i < array_len(begins); i++) {
		if (strncmp(line, begins[i], strlen(begins[i])) == 0)
			return true;
	}
	return false;
}

static const char *read_python(
	const struct file_set *files, const struct app_part *part, struct package_layer *layer)
{
	char *text;

	if (!part->manifest || strcmp(part->manifest, "requirements.txt") != 0)
		return "there is no requirements.txt";
	text = layer->texts[DEPENDENCY_REQUIREMENTS] =
		file_set_read(files, part->dir, part->manifest);
	if (!text)
		return "requirements.txt is too large";
	for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		line += strspn(line, " \t");
		if (names_file(line))
			return "requirements.txt names other files of the app";
	}
	return strstr(text, "file:") ? "requirements.txt names other files of the app" : NULL;
}

void package_layer_read(
	const struct file_set *files, const struct app_part *part, struct package_layer *ret_layer)
{
	const char *manager = part->package_manager;

	*ret_layer = (struct package_layer){0};
	if (part->install[0] || !manager)
		ret_layer->reason = "the app has a command of its own for them";
	else if (strcmp(manager, "npm") == 0)
		ret_layer->reason = read_node(files, part, ret_layer);
	else if (strcmp(manager, "pip") == 0)
		ret_layer->reason = read_python(files, part, ret_layer);
	else
		ret_layer->reason = "only those of npm and pip can be";
}

void package_layer_fini(struct package_layer *layer)
{
	for (size_t i = 0; i < array_len(layer->texts); i++)
		free(layer->texts[i]);
}

/* --- using and making them --- */

static struct dependency_spec make_spec(const struct package_layer *layer)
{
	struct dependency_spec spec = {0};

	for (size_t i = 0; i < array_len(layer->texts); i++)
		spec.files[i] = layer->texts[i];
	return spec;
}

const char *package_layer_lend(struct pipeline *pipeline, const struct package_layer *layer)
{
	struct dependency_spec spec = make_spec(layer);
	struct err err;

	if (layer->reason)
		return NULL;
	if (dependencies_lend(pipeline->sandbox, &spec, &err) < 0) {
		if (err.kind == ERR_CONFLICT)
			pipeline_log(pipeline, "no shared layer is used: %s", err.message);
		return NULL;
	}
	return layer->texts[DEPENDENCY_REQUIREMENTS] ? copy_python : copy_node;
}

void package_layer_share(struct pipeline *pipeline)
{
	for (int role = 0; role < ROLE_COUNT; role++) {
		struct package_layer layer;
		struct dependency_spec spec;
		struct err err;

		if (!pipeline->is_installed[role])
			continue;
		package_layer_read(&pipeline->files, &pipeline->detection.parts[role], &layer);
		spec = make_spec(&layer);
		/* Without a layer the next launch installs them as this one did. */
		if (!layer.reason && dependencies_prepare(pipeline->sandbox, &spec, &err) < 0)
			log_info("launch %s: no layer of its packages: %s", pipeline->record.id,
				err.message);
		package_layer_fini(&layer);
	}
}
