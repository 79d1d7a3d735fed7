/* SPDX-License-Identifier: Apache-2.0 */
#include "core/project/file_type.h"

#include "base/log.h"

#include <magic.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define UNKNOWN "application/octet-stream"

/* Nothing that unpacks, runs long, or reads another file. */
#define MAGIC_FLAGS                                                                                \
	(MAGIC_MIME_TYPE | MAGIC_NO_CHECK_COMPRESS | MAGIC_NO_CHECK_ELF | MAGIC_NO_CHECK_CDF |     \
		MAGIC_NO_CHECK_TAR)

struct file_types {
	pthread_mutex_t lock;
	magic_t magic; /* NULL: the library has no table; names alone decide */
};

/* What the ending of a name says. A text type is believed of any text, another of what is not known. */
static const struct {
	const char *ending;
	const char *type;
} endings[] = {
	{"astro", "text/x-astro"},
	{"bash", "text/x-shellscript"},
	{"c", "text/x-c"},
	{"cc", "text/x-c++"},
	{"cfg", "text/plain"},
	{"cjs", "text/javascript"},
	{"conf", "text/plain"},
	{"cpp", "text/x-c++"},
	{"cs", "text/x-csharp"},
	{"css", "text/css"},
	{"csv", "text/csv"},
	{"go", "text/x-go"},
	{"h", "text/x-c"},
	{"htm", "text/html"},
	{"html", "text/html"},
	{"ini", "text/plain"},
	{"ipynb", "application/x-ipynb+json"},
	{"java", "text/x-java"},
	{"js", "text/javascript"},
	{"json", "application/json"},
	{"jsonl", "application/jsonl"},
	{"jsx", "text/jsx"},
	{"kt", "text/x-kotlin"},
	{"less", "text/x-less"},
	{"lock", "text/plain"},
	{"log", "text/plain"},
	{"map", "application/json"},
	{"md", "text/markdown"},
	{"mjs", "text/javascript"},
	{"mts", "text/x-typescript"},
	{"npy", "application/x-npy"},
	{"parquet", "application/vnd.apache.parquet"},
	{"php", "text/x-php"},
	{"pkl", "application/x-pickle"},
	{"ps1", "text/x-powershell"},
	{"py", "text/x-python"},
	{"r", "text/x-r"},
	{"rb", "text/x-ruby"},
	{"rs", "text/x-rust"},
	{"rst", "text/x-rst"},
	{"sass", "text/x-sass"},
	{"scss", "text/x-scss"},
	{"sh", "text/x-shellscript"},
	{"sql", "text/x-sql"},
	{"svelte", "text/x-svelte"},
	{"svg", "image/svg+xml"},
	{"swift", "text/x-swift"},
	{"toml", "application/toml"},
	{"ts", "text/x-typescript"},
	{"tsv", "text/tab-separated-values"},
	{"tsx", "text/x-tsx"},
	{"txt", "text/plain"},
	{"vue", "text/x-vue"},
	{"wasm", "application/wasm"},
	{"woff", "font/woff"},
	{"woff2", "font/woff2"},
	{"xml", "application/xml"},
	{"yaml", "application/yaml"},
	{"yml", "application/yaml"},
};

/* Of the content: what libmagic says of texts that it takes for something that they may not be. */
static const char *const general[] = {
	"application/javascript",
	"application/json",
	"application/x-ndjson",
	"application/x-wine-extension-ini",
	"image/svg+xml",
	"inode/x-empty",
	"message/", /* letters and news: a text that begins with a word and a colon */
	"text/",
};

/* These are shown by browsers as pages that run scripts: whatever the name says, they are what they are. */
static const char *const certain[] = {"text/html", "image/svg+xml", "text/xml"};

static bool begins_with_any(const char *text, const char *const list[], size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (strncmp(text, list[i], strlen(list[i])) == 0)
			return true;
	}
	return false;
}

static const char *type_of_name(const char *path)
{
	const char *name = strrchr(path, '/'), *dot;

	name = name ? name + 1 : path;
	dot = strrchr(name, '.');
	for (size_t i = 0; dot && dot != name && i < array_len(endings); i++) {
		if (strcasecmp(endings[i].ending, dot + 1) == 0)
			return endings[i].type;
	}
	return NULL;
}

const char *file_type_refine(const char *content_type, const char *path)
{
	const char *by_name = type_of_name(path);

	if (!content_type[0] || strcmp(content_type, UNKNOWN) == 0)
		return by_name && strncmp(by_name, "text/", 5) != 0 ? by_name : UNKNOWN;
	if (strcmp(content_type, "inode/x-empty") == 0)
		return by_name ? by_name : "text/plain";
	if (!by_name || !begins_with_any(content_type, general, array_len(general)))
		return content_type;
	/* A page in a file of another name stays a page, but for languages that have pages in them. */
	if (begins_with_any(content_type, certain, array_len(certain)) &&
		strncmp(by_name, "text/x-", 7) != 0 && strcmp(by_name, "text/markdown") != 0 &&
		strcmp(by_name, "text/jsx") != 0 && strcmp(by_name, "text/javascript") != 0)
		return content_type;
	return by_name;
}

struct file_types *file_types_new(void)
{
	struct file_types *types = mem_new(sizeof(*types));
	size_t head = FILE_TYPE_HEAD;

	pthread_mutex_init(&types->lock, NULL);
	types->magic = magic_open(MAGIC_FLAGS);
	if (types->magic && magic_load(types->magic, NULL) < 0) {
		log_warning("types of files are known by their names alone: %s",
			magic_error(types->magic));
		magic_close(types->magic);
		types->magic = NULL;
	}
	if (types->magic)
		magic_setparam(types->magic, MAGIC_PARAM_BYTES_MAX, &head);
	return types;
}

void file_types_free(struct file_types *types)
{
	if (!types)
		return;
	if (types->magic)
		magic_close(types->magic);
	pthread_mutex_destroy(&types->lock);
	free(types);
}

/* Whether it can stand in a header and a database. */
static bool is_plain(const char *type)
{
	return type && strchr(type, '/') &&
	       strspn(type,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/.+-_") ==
		       strlen(type);
}

void file_types_find(struct file_types *types, const void *head, size_t len, const char *path,
	char ret_type[PROJECT_TYPE_MAX])
{
	const char *found = NULL;

	pthread_mutex_lock(&types->lock);
	if (len == 0)
		found = "inode/x-empty";
	else if (types->magic)
		found = magic_buffer(types->magic, head, len);
	snprintf(ret_type, PROJECT_TYPE_MAX, "%s",
		file_type_refine(is_plain(found) ? found : UNKNOWN, path));
	pthread_mutex_unlock(&types->lock);
}

bool file_type_is_listed(const char *list, const char *type)
{
	while (*list) {
		size_t len = strcspn(list, ", "), stem = len;

		if (len > 0 && list[len - 1] == '*')
			stem--;
		if (len > 0 && strncasecmp(list, type, stem) == 0 && (stem < len || !type[len]))
			return true;
		list += len;
		list += strspn(list, ", ");
	}
	return false;
}
