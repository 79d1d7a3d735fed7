/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlotd: wires everything together, in the order in which privileges and promises allow. First it
 * prepares directories and the keeper (premises.c); then it becomes an ordinary user, opens the
 * database, serves HTTP, and takes up the sandboxes that a daemon before it left running.
 */
#include "api/api.h"
#include "api/openapi.h"
#include "api/previews.h"
#include "api/replay.h"
#include "api/routes.h"
#include "api/sandbox_body.h"
#include "api/witness.h"
#include "auth/secret.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/auditor.h"
#include "core/engine.h"
#include "core/network.h"
#include "core/strongbox.h"
#include "daemon/issuer.h"
#include "daemon/premises.h"
#include "daemon/settings.h"
#include "daemon/transport.h"
#include "daemon/welcome.h"
#include "driver/native/native.h"
#include "http/listener.h"
#include "http/server.h"
#include "model/template.h"
#include "store/store.h"
#include "store/store_audit.h"
#include "store/store_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#define CLOSE_GRACE_MS 5000
#define HOSTS_MAX      16
#define REMIND_MS      86400000

struct daemon {
	struct settings settings;
	struct premises premises;
	struct issuer issuer;
	struct api api;
	struct store *store;
	struct auditor *auditor;
	struct strongbox *strongbox;
	struct driver *driver;
	struct engine *engine;
	struct listener listener, preview_listener;
	struct transport transport;
	struct server *server;
	struct previews *previews;
	int signal_fd;
	int shutdown_fd;
	int logs_fd;	 /* the output of processes */
	char *host_list; /* what the next point into */
	const char *hosts[HOSTS_MAX + 1];
};

static int read_log_level(const char *name, enum log_level *ret_level)
{
	static const char *const names[] = {"debug", "info", "warning", "error"};

	for (size_t i = 0; i < array_len(names); i++) {
		if (strcmp(names[i], name) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Each sandbox costs a descriptor, each client another. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

static int set_quotas(struct daemon *daemon, struct err *err)
{
	struct quota organization, user;

	if (quota_parse(daemon->settings.quota_organization, &organization) < 0 ||
		quota_parse(daemon->settings.quota_user, &user) < 0)
		return err_set(err, ERR_INVALID,
			"quota-organization and quota-user are lists of name=limit, such as "
			"sandboxes=50,memory=64Gi");
	store_quota_set_defaults(daemon->store, &organization, &user);
	return 0;
}

static int open_store(struct daemon *daemon, struct err *err)
{
	struct token_record admin = {.id = "admin",
		.owner = {.organization = "default", .user = "admin"},
		.scopes = SCOPE_ADMIN,
		.created_at_ms = clock_wall_ms()};
	unsigned char hash[SECRET_HASH_LEN];
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/state/sandlot.db", daemon->settings.data_dir);
	r = store_open(path, &daemon->store, err);
	if (r == 0)
		r = set_quotas(daemon, err);
	if (r < 0)
		return r;
	/* An ordinary user has few, and may need the very last. */
	if (!daemon->premises.is_rootless)
		store_workspace_take_turns(daemon->store);
	secret_hash(daemon->premises.token, hash);
	explicit_bzero(daemon->premises.token, sizeof(daemon->premises.token));
	return store_token_put(daemon->store, &admin, hash, err);
}

/* The end of the audit log goes to the daemon's own log too: whoever cuts one can be caught by the
 * other. */
static void tell_audit_head(struct daemon *daemon)
{
	struct audit_mark head = store_audit_head(daemon->store);
	char text[AUDIT_MARK_TEXT];

	audit_mark_format(&head, text);
	log_info("the audit log ends with %s", text);
}

static int open_auditor(struct daemon *daemon, struct err *err)
{
	struct audit_entry entry = {.action = "daemon.start", .detail = SANDLOT_VERSION};
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/state/audit.ring", daemon->settings.data_dir);
	r = auditor_open(daemon->store, path, daemon->settings.audit_keep, &daemon->auditor, err);
	if (r < 0)
		return r;
	tell_audit_head(daemon);
	auditor_put(daemon->auditor, &entry);
	return 0;
}

static void close_auditor(struct daemon *daemon)
{
	struct audit_entry entry = {.action = "daemon.stop", .detail = SANDLOT_VERSION};

	if (!daemon->auditor)
		return;
	auditor_put(daemon->auditor, &entry);
	auditor_close(daemon->auditor);
	tell_audit_head(daemon);
}

static int open_strongbox(struct daemon *daemon, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/state/secrets.key", daemon->settings.data_dir);
	return strongbox_open(daemon->store, path, &daemon->strongbox, err);
}

static int open_logs(struct daemon *daemon, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/state/logs", daemon->settings.data_dir);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make %s", path);
	daemon->logs_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return daemon->logs_fd < 0 ? err_sys(err, "open %s", path) : 0;
}

static void request_shutdown(void *arg)
{
	struct daemon *daemon = arg;

	(void)!write(daemon->shutdown_fd, &(uint64_t){1}, sizeof(uint64_t));
}

static void split_hosts(struct daemon *daemon)
{
	char *rest, *host;
	size_t count = 0;

	rest = daemon->host_list = mem_strdup(daemon->settings.api_hosts);
	while (count < HOSTS_MAX && (host = strsep(&rest, ","))) {
		if (host[0])
			daemon->hosts[count++] = host;
	}
}

static int open_server(struct daemon *daemon, struct err *err)
{
	struct server_config config = {.listener = &daemon->listener,
		.context = &daemon->api,
		.admit = api_admit,
		.account = witness_account,
		.refused = witness_refused,
		.takes_query = routes_take_query,
		.hosts = daemon->hosts,
		.max_workers = (unsigned)daemon->settings.workers};

	daemon->api.gate = (struct gate){.store = daemon->store,
		.tickets = ticket_book_new(),
		.issuer = issuer_rules(&daemon->issuer)};
	daemon->api.auditor = daemon->auditor;
	daemon->api.replays = replays_new();
	daemon->api.strongbox = daemon->strongbox;
	daemon->api.audits_commands = strcmp(daemon->settings.audit_exec, "text") == 0;
	daemon->api.default_resources = daemon->settings.resources;
	daemon->api.default_network = daemon->settings.network;
	daemon->api.default_idle_timeout_s = (int64_t)daemon->settings.idle_timeout_s;
	daemon->api.preview_domain = daemon->settings.preview_domain;
	daemon->api.preview_scheme = listener_scheme(&daemon->preview_listener);
	daemon->api.preview_port = daemon->preview_listener.port;
	daemon->api.templates = daemon->settings.templates;
	daemon->api.exec_output_max = daemon->settings.exec_output_max;
	daemon->api.spool_fd = daemon->logs_fd;
	daemon->api.openapi = openapi_make();
	daemon->api.shutdown = request_shutdown;
	daemon->api.shutdown_arg = daemon;
	snprintf(daemon->api.unready, sizeof(daemon->api.unready), "starting\n");
	split_hosts(daemon);
	config.routes = routes_table(&config.route_count);
	return server_open(&config, &daemon->server, err);
}

static int open_previews(struct daemon *daemon, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct previews_config config = {.api = &daemon->api,
		.listener = &daemon->preview_listener,
		.threads = cores > 0 ? (unsigned)cores : 1,
		.max_workers = (unsigned)daemon->settings.workers,
		.max_connections = SETTINGS_PREVIEW_CONNECTIONS,
		.max_per_source = (unsigned)daemon->settings.preview_source_connections,
		.max_per_sandbox = (unsigned)daemon->settings.preview_sandbox_connections,
		.requests_per_second = (unsigned)daemon->settings.preview_rate,
		.answer_ms = daemon->settings.preview_timeout_s * 1000};

	return previews_open(&config, &daemon->previews, err);
}

static int open_engine(struct daemon *daemon, struct err *err)
{
	struct engine_config config = {
		.store = daemon->store, .stop_grace_ms = (unsigned)daemon->settings.stop_grace_ms};
	int r = native_open(
		daemon->premises.keeper_socket, daemon->settings.disk_limits, &daemon->driver, err);

	if (r < 0)
		return r;
	config.driver = daemon->driver;
	config.logs_fd = daemon->logs_fd;
	config.output_max = daemon->settings.output_max;
	config.process_history = (unsigned)daemon->settings.process_history;
	config.memory_reserve = daemon->settings.memory_reserve;
	config.disk_reserve = daemon->settings.disk_reserve;
	config.vault = strongbox_vault(daemon->strongbox);
	config.resolver = daemon->settings.resolver;
	config.network_limits =
		(struct sluice_limits){.connections = (unsigned)daemon->settings.connections,
			.bandwidth = daemon->settings.bandwidth};
	return engine_open(&config, &daemon->engine, err);
}

/*
 * For the command line: the address; with TLS as a URL, and with the key by which it knows us, since no certificate is
 * made out for the loopback address.
 */
static void tell_address(const struct daemon *daemon)
{
	char address[WELCOME_ADDRESS_MAX], pin[CERTIFICATE_PIN_MAX], line[256];

	welcome_address(&daemon->listener, address);
	if (!daemon->transport.api.certificate) {
		premises_write_address(&daemon->premises, address);
		return;
	}
	certificate_pin(daemon->transport.api.certificate, pin);
	snprintf(line, sizeof(line), "https://%s %s", address, pin);
	premises_write_address(&daemon->premises, line);
}

/* Whether the signal that came is one to end. */
static bool ends_us(struct daemon *daemon)
{
	struct signalfd_siginfo info;

	if (read(daemon->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	if (info.ssi_signo != SIGHUP)
		return true;
	transport_reload(&daemon->transport);
	/* At once: the command line knows us by the key that is shown from now on. */
	tell_address(daemon);
	if (daemon->engine)
		network_reload_trust(daemon->engine);
	return false;
}

/* Until a signal, a request to shut down, or the loss of the keeper. Whether sandboxes end with us. */
static bool wait_for_end(struct daemon *daemon, int *exit_code)
{
	int keeper_fd = daemon->driver ? native_watch_fd(daemon->driver) : -1;
	struct pollfd fds[] = {{.fd = daemon->signal_fd, .events = POLLIN},
		{.fd = daemon->shutdown_fd, .events = POLLIN},
		{.fd = keeper_fd, .events = POLLRDHUP}};

	for (;;) {
		int count = poll(fds, array_len(fds), REMIND_MS);

		if (count == 0)
			transport_remind(&daemon->transport);
		if (count <= 0)
			continue;
		if (fds[1].revents)
			return true;
		if (fds[2].revents) {
			/* Its sandboxes ended with it, and we may no longer start another. */
			log_error("the keeper is gone; leaving, so that sandlotd can be started "
				  "again");
			*exit_code = 1;
			return false;
		}
		if (ends_us(daemon))
			return daemon->settings.stop_all;
	}
}

/* What the main thread waits for. */
static int take_signals(struct daemon *daemon, struct err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	daemon->signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
	daemon->shutdown_fd = eventfd(0, EFD_CLOEXEC);
	return daemon->signal_fd < 0 || daemon->shutdown_fd < 0 ? err_sys(err, "open the main loop")
								: 0;
}

static int open_all(struct daemon *daemon, struct err *err)
{
	int r;

	raise_descriptor_limit();
	if ((r = take_signals(daemon, err)) < 0 ||
		(r = issuer_open(&daemon->settings, &daemon->issuer, err)) < 0 ||
		(r = premises_open(&daemon->settings, &daemon->premises, err)) < 0 ||
		(r = listener_open(daemon->settings.api_bind, &daemon->listener, err)) < 0 ||
		(r = listener_open(daemon->settings.preview_bind, &daemon->preview_listener, err)) <
			0 ||
		(r = transport_check(&daemon->settings, &daemon->listener,
			 &daemon->preview_listener, err)) < 0 ||
		(r = premises_start_keeper(&daemon->settings, &daemon->premises, err)) < 0 ||
		(r = premises_drop_privileges(&daemon->premises, err)) < 0 ||
		(r = transport_open(&daemon->settings, &daemon->transport, &daemon->listener,
			 &daemon->preview_listener, err)) < 0 ||
		(r = open_store(daemon, err)) < 0 || (r = open_auditor(daemon, err)) < 0 ||
		(r = open_strongbox(daemon, err)) < 0 || (r = open_logs(daemon, err)) < 0 ||
		(r = open_server(daemon, err)) < 0 || (r = open_previews(daemon, err)) < 0)
		return r;
	if (open_engine(daemon, err) < 0) {
		/* It stays up to say why: /readyz, and every call that needs a sandbox. */
		log_error("sandboxes cannot be served: %s", err->message);
		snprintf(daemon->api.unready, sizeof(daemon->api.unready), "%s\n", err->message);
	} else {
		atomic_store(&daemon->api.engine, daemon->engine);
	}
	tell_address(daemon);
	welcome_print(daemon->settings.data_dir, &daemon->listener);
	return 0;
}

static void close_all(struct daemon *daemon, bool stop_all)
{
	struct err err;

	if (daemon->premises.address_fd > 0)
		premises_write_address(&daemon->premises, "");
	atomic_store(&daemon->api.is_leaving, true);
	if (daemon->server)
		server_close(daemon->server, CLOSE_GRACE_MS);
	previews_close(daemon->previews);
	transport_close(&daemon->transport);
	engine_close(daemon->engine);
	close_auditor(daemon);
	if (stop_all && daemon->driver &&
		(daemon->driver->ops->shutdown(daemon->driver, &err) < 0 ||
			store_sandbox_end_all(
				daemon->store, END_OPERATOR, "sandlot was shut down", &err) < 0))
		log_error("end the sandboxes: %s", err.message);
	if (daemon->driver)
		daemon->driver->ops->close(daemon->driver);
	strongbox_close(daemon->strongbox);
	store_close(daemon->store);
	ticket_book_free(daemon->api.gate.tickets);
	issuer_close(&daemon->issuer);
	fd_close(daemon->logs_fd);
	free(daemon->host_list);
	replays_free(daemon->api.replays);
	json_decref(daemon->api.openapi);
}

/* One that we started for nothing. It has no sandboxes yet. */
static void dismiss_keeper(struct daemon *daemon)
{
	const struct settings *settings = &daemon->settings;
	struct driver *driver = daemon->driver;
	struct err err;

	if (!daemon->premises.has_started_keeper)
		return;
	if (!driver && native_open(daemon->premises.keeper_socket, settings->disk_limits, &driver,
			       &err) < 0)
		return;
	daemon->driver = driver;
	(void)!driver->ops->shutdown(driver, &err);
}

int main(int argc, char *argv[])
{
	static struct daemon daemon = {.signal_fd = -1, .shutdown_fd = -1, .logs_fd = -1};
	enum log_level level;
	struct err err = {0};
	int exit_code = 0, r;
	bool stop_all;

	log_open("sandlotd", LOG_INFO);
	r = settings_read(argc, argv, &daemon.settings, &err);
	if (r == 0 && read_log_level(daemon.settings.log_level, &level) < 0)
		r = err_set(&err, ERR_INVALID, "log-level must be debug, info, warning or error");
	if (r == 0)
		r = template_check_list(daemon.settings.templates, &err);
	if (r == 0 && strcmp(daemon.settings.audit_exec, "hash") != 0 &&
		strcmp(daemon.settings.audit_exec, "text") != 0)
		r = err_set(&err, ERR_INVALID, "audit-exec must be hash or text");
	if (r == 0)
		r = network_default_check(&daemon.settings.network, &err);
	if (r == 0 && daemon.settings.help) {
		settings_print_help();
		return 0;
	}
	if (r == 0 && daemon.settings.version) {
		printf("sandlotd %s\n", SANDLOT_VERSION);
		return 0;
	}
	if (r == 0) {
		log_open("sandlotd", level);
		r = open_all(&daemon, &err);
	}
	if (r < 0) {
		fprintf(stderr, "sandlotd: %s\n", err.message);
		if (err.remedy[0])
			fprintf(stderr, "  try: %s\n", err.remedy);
		dismiss_keeper(&daemon);
		close_all(&daemon, false);
		return err_class((enum err_kind)err.kind)->exit_code;
	}
	stop_all = wait_for_end(&daemon, &exit_code);
	log_info("leaving");
	close_all(&daemon, stop_all);
	return exit_code;
}
