/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/build/step_packages.h"

#include "core/engine/sandbox_state.h"
#include "core/template/build/mirror_rules.h"
#include "core/template/templates.h"

#include <stdio.h>
#include <string.h>

/* A Debian image with another source of packages keeps its own for later; /tmp is in no layer. */
static const char apt_script[] =
	"set -e\n"
	"if [ -n \"$SANDLOT_APT_MIRROR\" ]; then\n"
	"  . /etc/os-release\n"
	"  echo \"deb $SANDLOT_APT_MIRROR $VERSION_CODENAME main\" > /tmp/sandlot.list\n"
	"  set -- -o Dir::Etc::sourcelist=/tmp/sandlot.list -o Dir::Etc::sourceparts=- \"$@\"\n"
	"fi\n"
	"[ -z \"$SANDLOT_APT_CA\" ] || set -- -o Acquire::https::CAInfo=\"$SANDLOT_APT_CA\" "
	"\"$@\"\n"
	"update() { while [ \"$1\" = -o ]; do o=\"$o $1 $2\"; shift 2; done; apt-get $o update; }\n"
	"update -o APT::Sandbox::User=root -o Acquire::Retries=3 \"$@\"\n"
	"apt-get install -y --no-install-recommends -o APT::Sandbox::User=root"
	" -o Acquire::Retries=3 \"$@\"\n"
	"apt-get clean\n"
	"rm -rf /var/lib/apt/lists/*\n";

/* An Alpine has its own release in the addresses of its packages; its list of them stays as it is. */
static const char apk_script[] =
	"set -e\n"
	"if [ -n \"$SANDLOT_APK_MIRROR\" ]; then\n"
	"  IFS=. read major minor rest < /etc/alpine-release\n"
	"  at=\"${SANDLOT_APK_MIRROR%/}/v$major.$minor\"\n"
	"  set -- --repositories-file /dev/null -X \"$at/main\" -X \"$at/community\" \"$@\"\n"
	"fi\n"
	"exec apk add --no-cache \"$@\"\n";

#define CA_FILE	     "/tmp/sandlot-ca.crt"
#define APT_LIST     "/tmp/sandlot-run.list"
#define APT_CONFIG   "/tmp/sandlot-apt.conf"
#define OS_RELEASE   "/etc/os-release"
#define RELEASE_MAX  (64u << 10)
#define CODENAME_MAX 32

static const struct package_kind {
	const char *mirror;	 /* the name of its setting */
	const char *variable;	 /* that names the mirror to the program */
	const char *ca_variable; /* that names the certificates */
	const char *const *argv;
} package_kinds[] = {
	[RECIPE_APT] = {"apt", "SANDLOT_APT_MIRROR", "SANDLOT_APT_CA",
		(const char *const[]){"/bin/sh", "-c", apt_script, "apt", NULL}},
	[RECIPE_PIP] = {"pip", "PIP_INDEX_URL", "PIP_CERT",
		(const char *const[]){
			"python3", "-m", "pip", "install", "--no-cache-dir", "--", NULL}},
	[RECIPE_NPM] = {"npm", "NPM_CONFIG_REGISTRY", "NPM_CONFIG_CAFILE",
		(const char *const[]){
			"npm", "install", "-g", "--no-audit", "--no-fund", "--", NULL}},
	[RECIPE_APK] = {"apk", "SANDLOT_APK_MIRROR", "SSL_CA_CERT_FILE",
		(const char *const[]){"/bin/sh", "-c", apk_script, "apk", NULL}},
};

static const char *mirror_of(const struct step_packages *packages, const char *name)
{
	const char *own = json_string_value(json_object_get(packages->mirrors, name));

	return own ? own : templates_mirror(packages->engine->config.templates, name);
}

/* Whether a step may fetch packages of a kind: a command may run any of these programs. */
static bool needs(const struct recipe_step *step, enum recipe_step_kind kind)
{
	return step->kind == kind || step->kind == RECIPE_RUN;
}

/*
 * What a builder may reach for packages beside its network: where the operator's mirrors are now. A recipe of the
 * program's own may also go where the host gets its packages from, which is where that Debian came from.
 */
json_t *step_packages_rules(const struct step_packages *packages, const struct recipe_step *step)
{
	const struct templates *templates = packages->engine->config.templates;
	json_t *rules = json_array();

	for (enum recipe_step_kind kind = RECIPE_APT; kind <= RECIPE_APK; kind++) {
		json_auto_t *some = NULL;

		if (needs(step, kind))
			some = mirror_rules_of(
				templates_mirror(templates, package_kinds[kind].mirror));
		json_array_extend(rules, some);
	}
	if (step->kind == RECIPE_RUN) {
		json_auto_t *some = mirror_rules_of(templates_mirror(templates, "go"));

		json_array_extend(rules, some);
	}
	if (packages->sources && needs(step, RECIPE_APT)) {
		json_auto_t *some = mirror_rules_of_sources(packages->sources);

		json_array_extend(rules, some);
	}
	return rules;
}

/* What a step says itself goes before what the mirrors are. */
static void set_missing(json_t *env, const char *name, const char *value)
{
	if (!json_object_get(env, name))
		json_object_set_new(env, name, json_string(value));
}

/* The name of the release of a Debian, by its own files; false if it is none, or tells of none. */
static bool read_codename(struct build_sandbox *box, char name[CODENAME_MAX])
{
	static const char key[] = "VERSION_CODENAME=";
	auto_free char *text = NULL;
	struct err ignored;
	const char *at;
	size_t len;

	if (build_sandbox_load(box, OS_RELEASE, RELEASE_MAX, &text, &ignored) < 0)
		return false;
	/* Its derivatives have archives of their own. */
	if (!strstr(text, "ID=debian") && strstr(text, "ID="))
		return false;
	at = strstr(text, key);
	at = at ? at + strlen(key) : "";
	len = strspn(at, "abcdefghijklmnopqrstuvwxyz");
	if (len == 0 || len >= CODENAME_MAX)
		return false;
	snprintf(name, CODENAME_MAX, "%.*s", (int)len, at);
	return true;
}

/*
 * apt has no variable for where packages come from, but one for a file of its settings. Sources that a step adds itself
 * stay; those that Debian came with are passed over.
 */
static int add_apt_config(const struct step_packages *packages, struct build_sandbox *box,
	json_t *env, bool has_ca, struct err *err)
{
	const char *mirror = mirror_of(packages, "apt");
	char codename[CODENAME_MAX];
	auto_free char *list = NULL, *config = NULL;
	int r;

	if (!mirror || json_object_get(env, "APT_CONFIG") || !read_codename(box, codename))
		return 0;
	list = mem_printf("deb %s %s main\n", mirror, codename);
	config = mem_printf("Dir::Etc::sourcelist \"" APT_LIST "\";\n"
			    "Dir::Ignore-Files-Silently:: \"^debian\\.sources$\";\n"
			    "APT::Sandbox::User \"root\";\n%s",
		has_ca ? "Acquire::https::CAInfo \"" CA_FILE "\";\n" : "");
	r = build_sandbox_write(box, APT_LIST, 0644, list, strlen(list), err);
	if (r == 0)
		r = build_sandbox_write(box, APT_CONFIG, 0644, config, strlen(config), err);
	if (r == 0)
		set_missing(env, "APT_CONFIG", APT_CONFIG);
	return r;
}

/*
 * The variables by which programs know the mirrors, and the operator's certificates if these are the operator's. Puts
 * the certificates there, where no layer takes them.
 */
int step_packages_add_mirrors(const struct step_packages *packages, struct build_sandbox *box,
	const struct recipe_step *step, json_t *env, struct err *err)
{
	const struct templates *templates = packages->engine->config.templates;
	auto_free char *ca = NULL;
	int r = templates_package_ca(templates, &ca, err);

	if (r == 0 && ca)
		r = build_sandbox_write(box, CA_FILE, 0644, ca, strlen(ca), err);
	if (r < 0)
		return r;
	for (enum recipe_step_kind kind = RECIPE_APT; kind <= RECIPE_APK; kind++) {
		const struct package_kind *row = &package_kinds[kind];
		const char *mirror = mirror_of(packages, row->mirror);
		bool is_operators = mirror == templates_mirror(templates, row->mirror);

		if (!needs(step, kind))
			continue;
		if (mirror)
			set_missing(env, row->variable, mirror);
		/* A user's commands may go elsewhere, where other certificates count. */
		if (ca && is_operators && (mirror || packages->is_own || step->kind == kind))
			set_missing(env, row->ca_variable, CA_FILE);
	}
	if (step->kind == RECIPE_RUN && templates_mirror(templates, "go"))
		set_missing(env, "GOPROXY", templates_mirror(templates, "go"));
	if (ca && step->kind == RECIPE_RUN && packages->is_own)
		set_missing(env, "CURL_CA_BUNDLE", CA_FILE);
	if (step->kind != RECIPE_RUN || packages->is_own)
		return 0;
	return add_apt_config(packages, box, env,
		ca && mirror_of(packages, "apt") == templates_mirror(templates, "apt"), err);
}

int step_packages_install(const struct step_packages *packages, struct build_sandbox *box,
	const struct recipe_step *step, struct err *err)
{
	const struct package_kind *kind = &package_kinds[step->kind];
	json_auto_t *argv = json_array();
	json_auto_t *env = json_pack("{s:s, s:s, s:s, s:s}", "DEBIAN_FRONTEND", "noninteractive",
		"PIP_BREAK_SYSTEM_PACKAGES", "1", "PIP_ROOT_USER_ACTION", "ignore",
		"npm_config_cache", "/tmp/npm");
	int r = step_packages_add_mirrors(packages, box, step, env, err);

	if (r < 0)
		return r;

	for (size_t i = 0; kind->argv[i]; i++)
		json_array_append_new(argv, json_string(kind->argv[i]));
	json_array_extend(argv, step->words);
	json_object_update(env, step->env);
	return build_sandbox_run(box,
		&(struct build_command){.argv = argv, .env = env, .user = "", .workdir = "/"}, err);
}

const char *step_packages_mirror(
	const struct step_packages *packages, const struct recipe_step *step)
{
	return step->kind >= RECIPE_APT ? mirror_of(packages, package_kinds[step->kind].mirror)
					: NULL;
}
