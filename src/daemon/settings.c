/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/settings.h"

#include "base/data_dir.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/number.h"
#include "base/similar.h"
#include "model/size.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CONFIG_DEFAULT "/etc/sandlot/sandlot.conf"
#define CONFIG_MAX     65536

#define VARIABLE_PREFIX "SANDLOT_"

enum type { TEXT, NUMBER, SIZE, CORES, SECONDS, LIMIT, SWITCH };

static const struct row {
	const char *name;
	enum type type;
	size_t offset;
	const char *value; /* the default */
	uint64_t min, max;
	const char *help;
} rows[] = {
	{"config", TEXT, offsetof(struct settings, config), CONFIG_DEFAULT, 0, 0,
		"configuration file, lines of name = value"},
	{"data-dir", TEXT, offsetof(struct settings, data_dir), DATA_DIR_OF_ROOT, 0, 0,
		"where state, workspaces and the first token live; without root "
		"~/.local/share/sandlot"},
	{"api-bind", TEXT, offsetof(struct settings, api_bind), "127.0.0.1:9090", 0, 0,
		"address of the API"},
	{"api-hosts", TEXT, offsetof(struct settings, api_hosts), "", 0, 0,
		"further Host values that are served, separated by commas"},
	{"preview-bind", TEXT, offsetof(struct settings, preview_bind), "127.0.0.1:9091", 0, 0,
		"address of previews"},
	{"preview-domain", TEXT, offsetof(struct settings, preview_domain), "preview.localhost", 0,
		0, "domain below which previews have their names"},
	{"tls-certificate", TEXT, offsetof(struct settings, tls_certificate), "", 0, 0,
		"file with the certificate of both addresses, which speak TLS then; SIGHUP reads "
		"it "
		"again"},
	{"tls-key", TEXT, offsetof(struct settings, tls_key), "", 0, 0,
		"file with its key, readable by the daemon's user"},
	{"preview-tls-certificate", TEXT, offsetof(struct settings, preview_tls_certificate), "", 0,
		0, "another one for previews"},
	{"preview-tls-key", TEXT, offsetof(struct settings, preview_tls_key), "", 0, 0,
		"file with its key"},
	{"allow-plain", SWITCH, offsetof(struct settings, allow_plain), "false", 0, 0,
		"speak plain HTTP also on addresses that other machines reach"},
	{"api-connections", NUMBER, offsetof(struct settings, api_connections), "4096", 16, 1 << 20,
		"connections to the API; an owner but the operator has a quarter of them at most"},
	{"preview-connections", NUMBER, offsetof(struct settings, preview_connections), "8192", 16,
		1 << 20,
		"connections to previews; to those of one owner but the operator a quarter at "
		"most"},
	{"preview-source-connections", NUMBER,
		offsetof(struct settings, preview_source_connections), "2048", 1, 1 << 20,
		"connections that one address may have to previews"},
	{"preview-sandbox-connections", NUMBER,
		offsetof(struct settings, preview_sandbox_connections), "2048", 1, 1 << 20,
		"connections that the previews of a sandbox may have"},
	{"preview-rate", NUMBER, offsetof(struct settings, preview_rate), "1000", 0, 1000000,
		"requests a second that one address may make to previews, but for loopback ones; "
		"0: "
		"any number"},
	{"preview-timeout", SECONDS, offsetof(struct settings, preview_timeout_s), "300", 1, 86400,
		"time that an app behind a preview may take until its answer begins"},
	{"login-life", NUMBER, offsetof(struct settings, login_life_s), "604800", 60, 31536000,
		"seconds after which a browser has to sign in again"},
	{"user", TEXT, offsetof(struct settings, user), "sandlot", 0, 0,
		"unprivileged user that the daemon becomes"},
	{"log-level", TEXT, offsetof(struct settings, log_level), "info", 0, 0,
		"debug, info, warning or error"},
	{"jwt-issuer", TEXT, offsetof(struct settings, jwt_issuer), "", 0, 0,
		"whose signed tokens (JWT) are taken; empty for nobody's"},
	{"jwt-audience", TEXT, offsetof(struct settings, jwt_audience), "", 0, 0,
		"what signed tokens must be meant for"},
	{"jwt-keys", TEXT, offsetof(struct settings, jwt_keys), "", 0, 0,
		"file with the issuer's keys: a JWK set, or one public key as PEM"},
	{"jwt-organization-claim", TEXT, offsetof(struct settings, jwt_organization_claim), "org",
		0, 0, "claim that names the organization"},
	{"jwt-user-claim", TEXT, offsetof(struct settings, jwt_user_claim), "sub", 0, 0,
		"claim that names the user"},
	{"jwt-scopes-claim", TEXT, offsetof(struct settings, jwt_scopes_claim), "scope", 0, 0,
		"claim that names the scopes"},
	{"templates", TEXT, offsetof(struct settings, templates), "host", 0, 0,
		"templates that are offered, of host and browser, separated by commas"},
	{"registry", TEXT, offsetof(struct settings, registry), "registry-1.docker.io", 0, 0,
		"where images come from whose name has no registry; empty for nowhere"},
	{"registry-prefix", TEXT, offsetof(struct settings, registry_prefix), "library", 0, 0,
		"what stands there before a name without an owner; empty for nothing"},
	{"registry-mirror", TEXT, offsetof(struct settings, registry_mirror), "", 0, 0,
		"hosts that are asked before a registry: [REGISTRY=]HOST[/PREFIX], separated by "
		"commas"},
	{"short-names", TEXT, offsetof(struct settings, short_names), "", 0, 0,
		"names that stand for images: NAME=IMAGE, separated by commas"},
	{"registry-plain", TEXT, offsetof(struct settings, registry_plain), "", 0, 0,
		"registries that are reached without TLS, separated by commas"},
	{"registry-allow", TEXT, offsetof(struct settings, registry_allow), "", 0, 0,
		"registries that may be at addresses which are not public, separated by commas"},
	{"registry-ca", TEXT, offsetof(struct settings, registry_ca), "", 0, 0,
		"file with the certificates that registries are trusted by; empty for the host's"},
	{"registry-auth", TEXT, offsetof(struct settings, registry_auth), "", 0, 0,
		"file with passwords of registries, as docker login writes it; sandlotd must be "
		"able to "
		"read it"},
	{"registry-stall", SECONDS, offsetof(struct settings, registry_stall_s), "60", 1, 86400,
		"time with less than 1 KiB a second after which a registry counts as failed: "
		"seconds, or 5m"},
	{"apt-mirror", TEXT, offsetof(struct settings, apt_mirror), "", 0, 0,
		"where builds of templates get Debian's packages; empty for what the image "
		"says, and for a new Debian what the host's sources.list says"},
	{"pip-index", TEXT, offsetof(struct settings, pip_index), "", 0, 0,
		"the same for packages of Python"},
	{"npm-registry", TEXT, offsetof(struct settings, npm_registry), "", 0, 0,
		"the same for packages of Node"},
	{"apk-mirror", TEXT, offsetof(struct settings, apk_mirror), "", 0, 0,
		"the same for packages of Alpine: what is above v3.20/main"},
	{"go-proxy", TEXT, offsetof(struct settings, go_proxy), "", 0, 0,
		"the same for modules of Go, one of which has the Python 3.12 of the catalogue"},
	{"package-ca", TEXT, offsetof(struct settings, package_ca), "", 0, 0,
		"file with the certificates that these are trusted by; empty for the "
		"image's"},
	{"allow-missing", TEXT, offsetof(struct settings, allow_missing), "", 0, 0,
		"walls that sandboxes may go without where the host lacks them"},
	{"idle-timeout", LIMIT, offsetof(struct settings, idle_timeout_s), "35m", 1, 366 * 86400,
		"time without use after which a sandbox is stopped: seconds, 35m, 8h, 2d, or "
		"never"},
	{"workspace-retention", LIMIT, offsetof(struct settings, workspace_retention_s), "never", 1,
		3660 * 86400ull,
		"time after which the workspace of a removed sandbox is purged: 30d, or never"},
	{"project-file-max", SIZE, offsetof(struct settings, project_file_max), "1Gi", 1,
		1ull << 50, "how large a file of a project may be"},
	{"project-types", TEXT, offsetof(struct settings, project_types), "*", 0, 0,
		"media types of files that projects take, separated by commas: text/*,image/png; "
		"*: "
		"all"},
	{"layer-retention", LIMIT, offsetof(struct settings, layer_retention_s), "7d", 1,
		3660 * 86400ull,
		"time after which layers of images that nothing uses are removed: 7d, or never"},
	{"stop-grace-ms", NUMBER, offsetof(struct settings, stop_grace_ms), "2000", 0, 600000,
		"what processes get between SIGTERM and SIGKILL"},
	{"pool", TEXT, offsetof(struct settings, pool), "", 0, 0,
		"sandboxes of a template without an image that wait for a create: "
		"host=4,browser=2"},
	{"pool-max", NUMBER, offsetof(struct settings, pool_max), "32", 0, 1000,
		"sandboxes that wait in all pools together; those of one owner but the operator a "
		"quarter of them"},
	{"pool-reserve", SIZE, offsetof(struct settings, pool_reserve), "512Mi", 0, 1ull << 50,
		"memory of the host, beside memory-reserve, below which pools are not filled"},
	{"ready-timeout", SECONDS, offsetof(struct settings, ready_timeout_s), "600", 1, 86400,
		"how long a sandbox is asked whether it is ready, as its template says"},
	{"launch-install-timeout", SECONDS, offsetof(struct settings, launch_install_s), "120", 1,
		86400, "how long a launch waits for packages, if it does not say"},
	{"launch-backend-timeout", SECONDS, offsetof(struct settings, launch_backend_s), "30", 1,
		86400, "the same until the backend answers"},
	{"launch-frontend-timeout", SECONDS, offsetof(struct settings, launch_frontend_s), "45", 1,
		86400, "the same until the frontend answers"},
	{"launch-history", NUMBER, offsetof(struct settings, launch_history), "1000", 1, 100000,
		"ended launches of an owner that are kept, with their logs"},
	{"otlp-endpoint", TEXT, offsetof(struct settings, otlp_endpoint), "", 0, 0,
		"the collector that traces of requests and launches are sent to (OTLP over HTTP, "
		"JSON): http://127.0.0.1:4318; empty for none"},
	{"exec-output-max", SIZE, offsetof(struct settings, exec_output_max), "1Mi", 1024, 64 << 20,
		"bytes kept of each stream of a buffered exec"},
	{"output-max", SIZE, offsetof(struct settings, output_max), "16Mi", 256 << 10, 1ull << 40,
		"bytes kept on disk of the output of each process, its head and its tail"},
	{"output-sandbox-max", SIZE, offsetof(struct settings, output_sandbox_max), "256Mi",
		1 << 20, 1ull << 50,
		"the same of all processes of a sandbox together, and no more than its disk limit"},
	{"process-history", NUMBER, offsetof(struct settings, process_history), "64", 1, 100000,
		"ended processes that each sandbox remembers, with their output"},
	{"execution-history", NUMBER, offsetof(struct settings, execution_history), "1000", 1,
		100000, "ended executions that are kept of each owner, with what came of them"},
	{"runtime-pool", TEXT, offsetof(struct settings, runtime_pool), "auto", 0, 0,
		"interpreters that wait for executions without a sandbox: none, auto (those that "
		"were lately asked for), or also so many: auto,python=2,python@browser=1"},
	{"execution-keep", NUMBER, offsetof(struct settings, execution_keep_s), "604800", 1,
		315360000, "seconds for which they are kept at most"},
	{"memory-reserve", SIZE, offsetof(struct settings, memory_reserve), "128Mi", 0, 1ull << 50,
		"memory of the host below which sandboxes are stopped, those of whoever holds most "
		"first"},
	{"disk-reserve", SIZE, offsetof(struct settings, disk_reserve), "512Mi", 0, 1ull << 50,
		"free space of the data directory below which nothing is created, started or "
		"uploaded"},
	{"disk-limits", SWITCH, offsetof(struct settings, disk_limits), "true", 0, 0,
		"give each new sandbox a disk of its own, which holds as much as its limit says"},
	{"keeper-timeout", SECONDS, offsetof(struct settings, keeper_timeout_s), "60", 10, 86400,
		"time without an answer of the keeper after which sandlotd leaves, for its next "
		"start to "
		"replace the keeper"},
	{"driver", TEXT, offsetof(struct settings, driver), "native", 0, 0,
		"what runs sandboxes; there is native alone"},
	{"workers", NUMBER, offsetof(struct settings, workers), "64", 4, 1024,
		"most requests that are worked on at a time"},
	{"backup-keep", NUMBER, offsetof(struct settings, backup_keep), "7", 1, 365,
		"backups of the state that are kept; one is written each day"},
	{"answer-memory", SIZE, offsetof(struct settings, answer_memory), "512Mi", 64 << 20,
		1ull << 50,
		"memory for answers that clients have not read and bodies that they send; an owner "
		"has a quarter"},
	{"audit-keep", NUMBER, offsetof(struct settings, audit_keep), "250000", 1000, 1ull << 40,
		"entries of the audit log that are kept"},
	{"audit-exec", TEXT, offsetof(struct settings, audit_exec), "hash", 0, 0,
		"how the audit log names commands: hash, or text"},
	{"quota-organization", TEXT, offsetof(struct settings, quota_organization), "", 0, 0,
		"what an organization may have, such as sandboxes=50,memory=64Gi"},
	{"quota-user", TEXT, offsetof(struct settings, quota_user), "", 0, 0,
		"what each user may have"},
	{"cpu", CORES, offsetof(struct settings, resources.cpu_millis), "1", 10, 1024000,
		"cores of a sandbox that asks for none"},
	{"memory", SIZE, offsetof(struct settings, resources.memory_bytes), "1Gi", 16 << 20,
		1ull << 50, "memory of a sandbox that asks for none"},
	{"disk", SIZE, offsetof(struct settings, resources.disk_bytes), "2Gi", 1 << 20, 1ull << 60,
		"disk of a sandbox that asks for none"},
	{"pids", NUMBER, offsetof(struct settings, resources.pids), "1024", 4, 4 << 20,
		"processes of a sandbox that asks for none"},
	{"network", TEXT, offsetof(struct settings, network.modes), "internet", 0, 0,
		"what a sandbox may reach that asks for nothing else: none, allowlist, internet; "
		"template=mode for one template, separated by commas"},
	{"allow", TEXT, offsetof(struct settings, network.rules), "", 0, 0,
		"names, addresses and networks that it may reach then, separated by commas; "
		"template=rule for one template"},
	{"bandwidth", SIZE, offsetof(struct settings, bandwidth), "0", 0, 1ull << 40,
		"bytes a second that a sandbox may send and receive; 0: no limit"},
	{"connections", NUMBER, offsetof(struct settings, connections), "512", 1, 65536,
		"connections that a sandbox may have open to the outside, at most"},
	{"egress-connections", NUMBER, offsetof(struct settings, egress_connections), "16384", 16,
		1 << 20,
		"connections that all sandboxes may have open to the outside; those of one owner a "
		"quarter of them at most"},
	{"egress-lookups", NUMBER, offsetof(struct settings, egress_lookups), "2048", 16, 1 << 20,
		"names that are looked up for sandboxes at a time; for one owner a quarter at "
		"most"},
	{"archive-downloads", NUMBER, offsetof(struct settings, archive_downloads), "32", 4, 1024,
		"archives that are downloaded at a time; by one owner a quarter of them at most"},
	{"resolver", TEXT, offsetof(struct settings, resolver), "", 0, 0,
		"name servers for sandboxes, as addresses separated by commas, instead of the "
		"host's"},
	{"stop-all", SWITCH, offsetof(struct settings, stop_all), "false", 0, 0,
		"end all sandboxes when the daemon ends"},
	{"help", SWITCH, offsetof(struct settings, help), "false", 0, 0, "print this and exit"},
	{"version", SWITCH, offsetof(struct settings, version), "false", 0, 0,
		"print the version and exit"},
};

static const struct row *find(const char *name, size_t len)
{
	for (size_t i = 0; i < array_len(rows); i++) {
		if (strlen(rows[i].name) == len && strncmp(rows[i].name, name, len) == 0)
			return &rows[i];
	}
	return NULL;
}

/* "0.5" as thousandths. */
static int parse_cores(const char *text, uint64_t *ret_millis)
{
	char *end;
	double cores = strtod(text, &end);

	if (end == text || *end || !(cores >= 0.01 && cores <= 1024))
		return -EINVAL;
	*ret_millis = (uint64_t)(cores * 1000 + 0.5);
	return 0;
}

/* "90", "90s", "35m", "8h", "30d" as seconds. */
static int parse_seconds(const char *text, uint64_t *ret_seconds)
{
	static const struct {
		char unit;
		uint64_t seconds;
	} units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
	size_t len = strspn(text, "0123456789");
	char digits[24];

	if (len == 0 || len >= sizeof(digits) || (text[len] && text[len + 1]))
		return -EINVAL;
	memcpy(digits, text, len);
	digits[len] = '\0';
	for (size_t i = 0; i < array_len(units); i++) {
		uint64_t number;
		int r;

		if (units[i].unit != text[len])
			continue;
		r = number_parse(digits, 0, UINT32_MAX, &number);
		if (r == 0)
			*ret_seconds = number * units[i].seconds;
		return r;
	}
	return -EINVAL;
}

static int parse(const struct row *row, const char *value, void *place)
{
	uint64_t number;
	int r = 0;

	switch (row->type) {
	case TEXT:
		*(const char **)place = value;
		return 0;
	case SWITCH:
		if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
			return -EINVAL;
		*(bool *)place = strcmp(value, "true") == 0;
		return 0;
	case NUMBER:
		r = number_parse(value, row->min, row->max, &number);
		break;
	case SIZE:
		r = size_parse(value, &number);
		break;
	case CORES:
		r = parse_cores(value, &number);
		break;
	case LIMIT:
		if (strcmp(value, "never") == 0) {
			*(uint64_t *)place = SETTINGS_NEVER;
			return 0;
		}
		r = parse_seconds(value, &number);
		break;
	case SECONDS:
		r = parse_seconds(value, &number);
		break;
	}
	if (r == 0 && (number < row->min || number > row->max))
		r = -ERANGE;
	if (r == 0)
		*(uint64_t *)place = number;
	return r;
}

static int set(struct settings *settings, const struct row *row, const char *value,
	const char *origin, struct err *err)
{
	int r = parse(row, value, (char *)settings + row->offset);

	if (r == -ERANGE)
		return err_explain(err, ERR_INVALID, "invalid_setting", NULL,
			"%s: %s must be from %llu to %llu, not \"%s\"", origin, row->name,
			(unsigned long long)row->min, (unsigned long long)row->max, value);
	if (r < 0)
		return err_explain(err, ERR_INVALID, "invalid_setting",
			"sandlotd --help lists them", "%s: \"%s\" is not a value for %s (%s)",
			origin, value, row->name, row->help);
	return 0;
}

static void variable_name(const struct row *row, char name[64])
{
	size_t len = format_append(name, 64, 0, VARIABLE_PREFIX "%s", row->name);

	for (size_t i = 0; i < len; i++)
		name[i] = (char)(name[i] == '-' ? '_' : toupper((unsigned char)name[i]));
}

/* A text for the remedy of an error: what may have been meant by a name that no setting has. */
static void suggest(const char *name, const char *prefix, char *remedy, size_t size)
{
	const struct row *best = NULL;
	unsigned least = SIMILAR_MAX + 1;

	for (size_t i = 0; i < array_len(rows); i++) {
		unsigned distance = similar_distance(rows[i].name, name);

		if (distance < least && distance < strlen(rows[i].name)) {
			least = distance;
			best = &rows[i];
		}
	}
	if (best && *prefix == 'S') {
		char variable[64];

		variable_name(best, variable);
		snprintf(remedy, size, "did you mean %s? sandlotd --help lists them", variable);
	} else if (best) {
		snprintf(remedy, size, "did you mean %s%s? sandlotd --help lists them", prefix,
			best->name);
	} else {
		snprintf(remedy, size, "sandlotd --help lists them");
	}
}

bool settings_explain_variable(const char *variable, struct err *ret_err)
{
	/* Those of the command line, whose user may start the daemon too. */
	static const char *const others[] = {"SANDLOT_URL", "SANDLOT_TOKEN", "SANDLOT_CA_FILE"};
	const size_t prefix = strlen(VARIABLE_PREFIX), len = strcspn(variable, "=");
	char name[64];

	if (strncmp(variable, VARIABLE_PREFIX, prefix) != 0)
		return false;
	for (size_t i = 0; i < array_len(others); i++) {
		if (strlen(others[i]) == len && strncmp(variable, others[i], len) == 0)
			return false;
	}
	snprintf(name, sizeof(name), "%.*s", (int)(len - prefix), variable + prefix);
	for (char *at = name; *at; at++)
		*at = (char)(*at == '_' ? '-' : tolower((unsigned char)*at));
	if (find(name, strlen(name)))
		return false;
	err_set(ret_err, ERR_INVALID, "the variable %.*s is no setting", (int)len, variable);
	suggest(name, VARIABLE_PREFIX, ret_err->remedy, sizeof(ret_err->remedy));
	return true;
}

static int read_environment(struct settings *settings, struct err *err)
{
	for (size_t i = 0; i < array_len(rows); i++) {
		char name[64];
		const char *value;
		int r;

		variable_name(&rows[i], name);
		value = getenv(name);
		r = value ? set(settings, &rows[i], value, name, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static char *trim(char *text)
{
	char *end = text + strlen(text);

	while (end > text && isspace((unsigned char)end[-1]))
		*--end = '\0';
	return text + strspn(text, " \t");
}

static int read_line(
	struct settings *settings, const char *file, int number, char *line, struct err *err)
{
	char origin[160], *equals, *name;
	const struct row *row;

	line[strcspn(line, "#")] = '\0';
	line = trim(line);
	if (!line[0])
		return 0;
	snprintf(origin, sizeof(origin), "%s:%d", file, number);
	equals = strchr(line, '=');
	if (!equals)
		return err_set(err, ERR_INVALID, "%s: a line is name = value", origin);
	*equals = '\0';
	name = trim(line);
	row = find(name, strlen(name));
	if (!row) {
		err_set(err, ERR_INVALID, "%s: there is no setting %s", origin, name);
		suggest(name, "", err->remedy, sizeof(err->remedy));
		return -EINVAL;
	}
	return set(settings, row, mem_strdup(trim(equals + 1)), origin, err);
}

static int read_file(struct settings *settings, struct err *err)
{
	auto_free char *text = mem_new(CONFIG_MAX);
	ssize_t n = fd_read_file(AT_FDCWD, settings->config, text, CONFIG_MAX);
	char *rest = text, *line;
	int number = 0, r = 0;

	if (n == -ENOENT && strcmp(settings->config, CONFIG_DEFAULT) == 0)
		return 0;
	if (n == -ENOENT)
		return err_set(err, ERR_INVALID, "the configuration file %s does not exist",
			settings->config);
	if (n < 0)
		return err_from(err, (int)n, "read the configuration file %s", settings->config);
	if (n == CONFIG_MAX - 1)
		return err_set(err, ERR_INVALID, "the configuration file %s is too large",
			settings->config);
	while (r == 0 && (line = strsep(&rest, "\n")))
		r = read_line(settings, settings->config, ++number, line, err);
	return r;
}

/* --name value, --name=value, and --name alone for a switch. With only: that one setting. */
static int read_flags(
	struct settings *settings, int argc, char *argv[], const char *only, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		const char *name = argv[i] + 2, *equals, *value = NULL;
		const struct row *row = NULL;
		int r;

		if (strncmp(argv[i], "--", 2) == 0) {
			equals = strchr(name, '=');
			row = find(name, equals ? (size_t)(equals - name) : strlen(name));
			value = equals ? equals + 1 : NULL;
		}
		if (!row) {
			err_explain(
				err, ERR_INVALID, "unknown_flag", NULL, "unknown flag %s", argv[i]);
			suggest(argv[i] + strspn(argv[i], "-"), "--", err->remedy,
				sizeof(err->remedy));
			return -EINVAL;
		}
		if (!value && row->type == SWITCH)
			value = "true";
		else if (!value && ++i < argc)
			value = argv[i];
		if (!value)
			return err_set(err, ERR_INVALID, "flag --%s needs a value", row->name);
		r = only && strcmp(only, row->name) != 0 ? 0
							 : set(settings, row, value, "flag", err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What is different for an ordinary user: walls that only root can be sure of may be missing. */
static void set_rootless_defaults(struct settings *settings)
{
	char *data_dir = data_dir_of_user();

	settings->allow_missing = "cpu,disk,memory";
	if (data_dir)
		settings->data_dir = data_dir;
}

int settings_read(int argc, char *argv[], struct settings *ret_settings, struct err *err)
{
	struct settings settings = {0};
	int r = 0;

	for (size_t i = 0; i < array_len(rows) && r == 0; i++)
		r = set(&settings, &rows[i], rows[i].value, "default", err);
	if (r == 0 && geteuid() != 0)
		set_rootless_defaults(&settings);
	/* Which file to read is itself a setting, so it is looked for first. */
	if (r == 0 && getenv("SANDLOT_CONFIG"))
		settings.config = getenv("SANDLOT_CONFIG");
	if (r == 0)
		r = read_flags(&settings, argc, argv, "config", err);
	if (r == 0)
		r = read_file(&settings, err);
	if (r == 0)
		r = read_environment(&settings, err);
	if (r == 0)
		r = read_flags(&settings, argc, argv, NULL, err);
	if (r == 0)
		*ret_settings = settings;
	return r;
}

void settings_print_help(void)
{
	printf("sandlotd serves sandboxes over HTTP. Started by root it gives up its privileges; "
	       "an\n"
	       "ordinary user's has what that user has.\n\n"
	       "Usage: sandlotd [--name value]...\n\n"
	       "Each setting can also be the line `name = value` of the configuration file, or an\n"
	       "environment variable: --data-dir is SANDLOT_DATA_DIR.\n\n");
	for (size_t i = 0; i < array_len(rows); i++) {
		printf("  --%-27s %s", rows[i].name, rows[i].help);
		if (rows[i].type != SWITCH && rows[i].value[0])
			printf(" (%s)", rows[i].value);
		printf("\n");
	}
}
