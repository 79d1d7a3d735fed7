/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandlotd: wires everything together, in the order in which privileges and promises allow. First it
 * prepares directories (privileged_setup.c) and the driver; then it becomes an ordinary user, opens the
 * database, serves HTTP, and takes up the sandboxes that a daemon before it left running.
 */
#include "api/api.h"
#include "api/audit_hook.h"
#include "api/execution/late_executions.h"
#include "api/idempotency.h"
#include "api/openapi.h"
#include "api/operator/logins.h"
#include "api/preview/previews.h"
#include "api/request_span.h"
#include "api/routes.h"
#include "api/sandbox/sandbox_body.h"
#include "auth/secret.h"
#include "base/clock.h"
#include "base/fail_point.h"
#include "base/log.h"
#include "base/share_pool.h"
#include "core/context/context.h"
#include "core/dependency/dependencies.h"
#include "core/engine/backups.h"
#include "core/engine/engine.h"
#include "core/engine/sandbox_network.h"
#include "core/execution/artifact_store.h"
#include "core/execution/execution.h"
#include "core/execution/runtime_pool.h"
#include "core/job/backup_job.h"
#include "core/pool/pool_plan.h"
#include "core/project/projects.h"
#include "core/secret/secret_store.h"
#include "core/template/image/layer_collect.h"
#include "core/template/template_job.h"
#include "core/template/templates.h"
#include "core/token/token_request.h"
#include "core/upkeep/engine_open.h"
#include "core/upkeep/heap.h"
#include "daemon/banner.h"
#include "daemon/descriptors.h"
#include "daemon/issuer.h"
#include "daemon/privileged_setup.h"
#include "daemon/settings.h"
#include "daemon/state.h"
#include "daemon/transport.h"
#include "driver/driver_table.h"
#include "http/listener.h"
#include "http/server/server.h"
#include "launch/launches.h"
#include "model/access/owner.h"
#include "model/template/template.h"
#include "store/store.h"
#include "store/store_clock.h"
#include "trace/trace_export.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define CLOSE_GRACE_MS 5000
#define HOSTS_MAX      16
#define REMIND_MS      86400000
#define JOBS_RUNNING   8     /* at a time */
#define JOBS_HISTORY   100   /* of an owner */
#define REOPEN_MS      2000  /* between attempts to serve sandboxes */
#define REFUSED_MS     60000 /* how long we stay to say why the driver cannot start */

/* The err.code of a start that failed because the driver's part that needs privileges ended, and the status with which
 * we leave then. */
#define DRIVER_GONE	   "driver_gone"
#define DRIVER_GONE_STATUS 1
#define DATABASE_STATUS	   65 /* EX_DATAERR */

struct daemon {
	struct settings settings;
	struct descriptor_plan plan;
	struct privileged_setup setup;
	struct state state;
	struct issuer issuer;
	struct api api;
	struct event_bus *bus;
	struct job_kind job_kinds[4];
	struct jobs *jobs;
	struct contexts *contexts;
	struct executions *executions;
	struct launches *launches;
	struct trace_export *traces;
	struct artifact_store *artifacts;
	const struct driver_kind *driver_kind;
	struct driver_config driver_config;
	bool has_prepared; /* something runs now for the driver that did not before */
	struct driver *driver;
	struct engine *engine;
	struct templates *templates;
	struct layer_collector *layer_collector;
	struct projects *projects;
	struct listener listener, local_listener, preview_listener;
	struct transport transport;
	struct server *server;
	struct previews *previews;
	int signal_fd;
	int shutdown_fd;
	uint64_t unserved_ms; /* since when attempts to open the engine meet silence, or 0 */
	uint64_t reopen_ms;   /* when the next attempt to open the engine is due; steady clock */
	char *host_list;      /* what the next point into */
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

static const char *or_null(const char *text)
{
	return text[0] ? text : NULL;
}

static int open_templates(struct daemon *daemon, struct err *err)
{
	const struct settings *settings = &daemon->settings;
	const struct templates_config config = {.registry = settings->registry,
		.registry_prefix = settings->registry_prefix,
		.mirrors = settings->registry_mirror,
		.short_names = settings->short_names,
		.plain = settings->registry_plain,
		.allowed = settings->registry_allow,
		.ca_file = or_null(settings->registry_ca),
		.auth_file = or_null(settings->registry_auth),
		.stall_s = (unsigned)settings->registry_stall_s,
		.apt_mirror = or_null(settings->apt_mirror),
		.pip_index = or_null(settings->pip_index),
		.npm_registry = or_null(settings->npm_registry),
		.apk_mirror = or_null(settings->apk_mirror),
		.go_proxy = or_null(settings->go_proxy),
		.package_ca = or_null(settings->package_ca),
		.disk_reserve = settings->disk_reserve,
		.layer_retention_s = settings->layer_retention_s == SETTINGS_NEVER
					     ? 0
					     : (int64_t)settings->layer_retention_s};

	return templates_open(&config, daemon->state.blobs_fd, &daemon->templates, err);
}

static void preview_origin(
	void *arg, const char *sandbox_id, uint16_t port, char origin[LAUNCHES_ORIGIN_MAX])
{
	const struct daemon *daemon = arg;

	_Static_assert(LAUNCHES_ORIGIN_MAX == API_PREVIEW_URL_MAX, "one is the other");
	api_preview_url(&daemon->api, sandbox_id, port, origin);
}

static int open_traces(struct daemon *daemon, struct err *err)
{
	const char *endpoint = daemon->settings.otlp_endpoint;

	return endpoint[0] ? trace_export_open(endpoint, &daemon->traces, err) : 0;
}

/* Sequence numbers of events go on growing over restarts, so that a client can tell old from new. */
static int open_jobs(struct daemon *daemon, struct err *err)
{
	struct jobs_config config = {.store = daemon->state.store,
		.dir_fd = daemon->state.jobs_fd,
		.kinds = daemon->job_kinds,
		.kind_count = array_len(daemon->job_kinds),
		.max_running = JOBS_RUNNING,
		.history = JOBS_HISTORY,
		.log_bytes = daemon->settings.output_max,
		.disk_reserve = daemon->settings.disk_reserve};

	config.bus = daemon->bus =
		event_bus_new((uint64_t)store_clock_ms(daemon->state.store) * 1000);
	daemon->launches = launches_new(&(struct launches_config){.store = daemon->state.store,
		.waits_s = {[LAUNCH_WAIT_INSTALL] = (unsigned)daemon->settings.launch_install_s,
			[LAUNCH_WAIT_BACKEND] = (unsigned)daemon->settings.launch_backend_s,
			[LAUNCH_WAIT_FRONTEND] = (unsigned)daemon->settings.launch_frontend_s},
		.history = (unsigned)daemon->settings.launch_history,
		.origin = preview_origin,
		.arg = daemon,
		.traces = daemon->traces});
	daemon->job_kinds[3] = (struct job_kind)LAUNCH_JOB(daemon->launches);
	daemon->job_kinds[0] = (struct job_kind)BACKUP_JOB(daemon->state.backups);
	daemon->job_kinds[1] = (struct job_kind)TEMPLATE_JOB(daemon->templates);
	daemon->job_kinds[2] = (struct job_kind)DEPENDENCIES_JOB(daemon->templates);
	return jobs_open(&config, &daemon->jobs, err);
}

/* What cannot be settled, because the disk is full say, is no reason not to serve the rest. */
static void open_projects(struct daemon *daemon)
{
	struct projects_config config = {.store = daemon->state.store,
		.bus = daemon->bus,
		.dir_fd = daemon->state.projects_fd,
		.disk_reserve = daemon->settings.disk_reserve,
		.file_max = daemon->settings.project_file_max,
		.types = daemon->settings.project_types};
	struct err err;

	daemon->projects = projects_new(&config);
	if (projects_settle(daemon->projects, &err) < 0)
		log_error("projects: %s", err.message);
}

static int open_executions(struct daemon *daemon, struct err *err)
{
	struct executions_config config = {.store = daemon->state.store,
		.bus = daemon->bus,
		.history = (unsigned)daemon->settings.execution_history,
		.keep_ms = (int64_t)daemon->settings.execution_keep_s * 1000};
	int r = artifact_store_open(daemon->state.artifacts_fd, daemon->state.store,
		daemon->settings.disk_reserve, &daemon->artifacts, err);

	if (r < 0)
		return r;
	r = runtime_pool_new(daemon->settings.runtime_pool, &daemon->api.runtime_pool, err);
	if (r < 0)
		return r;
	config.artifacts = daemon->artifacts;
	daemon->contexts = contexts_new(daemon->state.store);
	daemon->executions = executions_new(&config);
	return 0;
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
		.local = &daemon->local_listener,
		.context = &daemon->api,
		.admit = api_admit,
		.account = audit_hook_account,
		.refused = audit_hook_refused,
		.traced = daemon->traces ? request_span_export : NULL,
		.takes_query = routes_take_query,
		.hosts = daemon->hosts,
		.max_memory = daemon->settings.answer_memory,
		.max_workers = (unsigned)daemon->settings.workers,
		.max_connections = daemon->plan.api_connections};
	struct share_limits packers = share_limits_of(daemon->plan.archive_downloads);

	daemon->api.gate = (struct gate){.store = daemon->state.store,
		.tickets = ticket_table_new(),
		.issuer = issuer_rules(&daemon->issuer)};
	secret_store_derive_key(
		daemon->state.secret_store, "bound tokens", daemon->api.gate.bound_key);
	daemon->api.audit_writer = daemon->state.audit_writer;
	daemon->api.idempotency_keys = idempotency_keys_new();
	/* Never freed: the threads that pack end by themselves. */
	daemon->api.packers = share_pool_new(&packers);
	daemon->api.secret_store = daemon->state.secret_store;
	daemon->api.backups = daemon->state.backups;
	daemon->api.host_report = daemon->setup.report;
	open_projects(daemon);
	daemon->api.projects = daemon->projects;
	daemon->api.launches = daemon->launches;
	daemon->api.traces = daemon->traces;
	daemon->api.jobs = daemon->jobs;
	daemon->api.contexts = daemon->contexts;
	daemon->api.executions = daemon->executions;
	daemon->api.late_executions = late_executions_new(daemon->jobs);
	daemon->api.bus = daemon->bus;
	daemon->api.audits_commands = strcmp(daemon->settings.audit_exec, "text") == 0;
	daemon->api.driver = daemon->driver_kind->name;
	daemon->api.preview_domain = daemon->settings.preview_domain;
	daemon->api.preview_scheme = listener_scheme(&daemon->preview_listener);
	daemon->api.preview_port = daemon->preview_listener.port;
	daemon->api.login_life_ms = (int64_t)daemon->settings.login_life_s * 1000;
	daemon->api.exec_output_max = daemon->settings.exec_output_max;
	daemon->api.spool_fd = daemon->state.logs_fd;
	daemon->api.spool_reserve = daemon->settings.disk_reserve;
	daemon->api.openapi = openapi_make();
	daemon->api.shutdown = request_shutdown;
	daemon->api.shutdown_arg = daemon;
	pthread_mutex_init(&daemon->api.unready_lock, NULL);
	err_explain(&daemon->api.unready, ERR_UNAVAILABLE, "not_ready",
		"try again in a few seconds", "the daemon is starting");
	split_hosts(daemon);
	config.routes = routes_table(&config.route_count);
	config.pages = routes_pages();
	return server_open(&config, &daemon->server, err);
}

static int open_previews(struct daemon *daemon, struct err *err)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	struct previews_config config = {.api = &daemon->api,
		.server = daemon->server,
		.listener = &daemon->preview_listener,
		.threads = cores > 0 ? (unsigned)cores : 1,
		.max_workers = (unsigned)daemon->settings.workers,
		.max_connections = daemon->plan.preview_connections,
		.max_per_source = (unsigned)daemon->settings.preview_source_connections,
		.max_per_sandbox = (unsigned)daemon->settings.preview_sandbox_connections,
		.requests_per_second = (unsigned)daemon->settings.preview_rate,
		.answer_ms = daemon->settings.preview_timeout_s * 1000};

	return previews_open(&config, &daemon->previews, err);
}

/* How long a driver that is silent is waited for. An ordinary user's keeper is not replaced by a new start, so leaving
 * would not help. */
static uint64_t patience_ms(const struct daemon *daemon)
{
	return daemon->setup.is_rootless ? 0 : daemon->settings.keeper_timeout_s * 1000;
}

/* Has the driver do what needs privileges, if anything does. */
static int prepare_driver(struct daemon *daemon, struct err *err)
{
	daemon->driver_config = (struct driver_config){.data_dir = daemon->settings.data_dir,
		.owner = daemon->setup.owner,
		.uid = daemon->setup.uid,
		.gid = daemon->setup.gid,
		.allow_missing = daemon->settings.allow_missing,
		.limits_disk = daemon->settings.disk_limits,
		.is_rootless = daemon->setup.is_rootless,
		.patience_ms = patience_ms(daemon)};

	if (!daemon->driver_kind->prepare)
		return 0;
	return daemon->driver_kind->prepare(&daemon->driver_config, &daemon->has_prepared, err);
}

/* Opens the driver, if it is not open. */
static int open_driver(struct daemon *daemon, struct err *err)
{
	return daemon->driver
		       ? 0
		       : daemon->driver_kind->open(&daemon->driver_config, &daemon->driver, err);
}

static int open_engine(struct daemon *daemon, struct err *err)
{
	struct engine_config config = {.store = daemon->state.store,
		.stop_grace_ms = (unsigned)daemon->settings.stop_grace_ms};
	int r = open_driver(daemon, err);

	if (r < 0)
		return r;
	config.driver = daemon->driver;
	config.bus = daemon->bus;
	config.logs_fd = daemon->state.logs_fd;
	config.unfinished_fd = daemon->state.unfinished_fd;
	config.baselines_fd = daemon->state.baselines_fd;
	config.projects = daemon->projects;
	config.output_max = daemon->settings.output_max;
	config.allow_missing = daemon->settings.allow_missing;
	config.limits_disk = daemon->settings.disk_limits;
	config.pool = daemon->settings.pool;
	config.pool_max = (unsigned)daemon->settings.pool_max;
	config.pool_reserve = daemon->settings.pool_reserve;
	config.ready_timeout_s = (unsigned)daemon->settings.ready_timeout_s;
	config.max_processes = daemon->plan.processes;
	config.max_running = daemon->plan.running;
	config.egress_connections = daemon->plan.egress_connections;
	config.egress_pipes = daemon->plan.egress_pipes;
	config.egress_lookups = daemon->plan.egress_lookups;
	config.output_sandbox_max = daemon->settings.output_sandbox_max;
	config.process_history = (unsigned)daemon->settings.process_history;
	config.memory_reserve = daemon->settings.memory_reserve;
	config.disk_reserve = daemon->settings.disk_reserve;
	if (daemon->settings.workspace_retention_s != SETTINGS_NEVER)
		config.workspace_retention_s = (int64_t)daemon->settings.workspace_retention_s;
	config.secret_cache = secret_store_cache(daemon->state.secret_store);
	config.resolver = daemon->settings.resolver;
	config.sandbox_network_limits = (struct sandbox_egress_limits){
		.connections = (unsigned)daemon->settings.connections,
		.bandwidth = daemon->settings.bandwidth};
	config.defaults = (struct sandbox_defaults){.resources = daemon->settings.resources,
		.network = daemon->settings.network,
		.idle_timeout_s = (int64_t)daemon->settings.idle_timeout_s,
		.templates = daemon->settings.templates};
	config.preview_generation = &daemon->api.preview_generation;
	config.jobs = daemon->jobs;
	config.templates = daemon->templates;
	return engine_open(&config, &daemon->engine, err);
}

/*
 * Whether what the driver needs has ended or was silent for too long, so that no attempt of ours can succeed: as an ordinary user, without new
 * privileges, we cannot start it again. Leaving cures it, because whoever supervises us starts both again.
 */
static bool is_driver_gone(const struct daemon *daemon)
{
	struct pollfd gone = {.events = POLLIN};

	if (daemon->driver) {
		gone.fd = driver_gone_fd(daemon->driver);
		return poll(&gone, 1, 0) > 0;
	}
	if (!daemon->driver_kind->is_gone)
		return false;
	return (patience_ms(daemon) > 0 &&
		       clock_steady_ms() - daemon->unserved_ms >= patience_ms(daemon)) ||
	       daemon->driver_kind->is_gone(&daemon->driver_config);
}

static const char *name_helper(const struct daemon *daemon)
{
	return daemon->driver_kind->helper ? daemon->driver_kind->helper : "the driver";
}

/*
 * Takes up the sandboxes and serves them. What fails is tried again later, and meanwhile we stay up to say why: /readyz,
 * and every call that needs a sandbox. Only if the driver is gone is that an error. One that said why it cannot start
 * is gone too; its reason is shown for a minute before we leave, because it will be the same after each start.
 */
static int serve_sandboxes(struct daemon *daemon, struct err *err)
{
	if (open_engine(daemon, err) == 0) {
		contexts_adopt(daemon->contexts, daemon->engine);
		executions_adopt(
			daemon->executions, daemon->engine, context_find_host, daemon->contexts);
		atomic_store(&daemon->api.engine, daemon->engine);
		templates_attach(daemon->templates, daemon->engine);
		daemon->layer_collector = layer_collector_start(daemon->engine);
		runtime_pool_open(daemon->api.runtime_pool, daemon->engine);
		launches_attach(daemon->launches, daemon->engine, daemon->jobs, daemon->projects);
		jobs_look(daemon->jobs);
		return 0;
	}
	daemon->reopen_ms = clock_steady_ms() + REOPEN_MS;
	/* One of another version is not silent: it serves its sandboxes until somebody ends them. */
	if (daemon->unserved_ms == 0 || strcmp(err->code, DRIVER_OTHER_VERSION) == 0)
		daemon->unserved_ms = clock_steady_ms();
	if (strcmp(err->code, DRIVER_CANNOT_START) == 0)
		daemon->reopen_ms = clock_steady_ms() + REFUSED_MS;
	else if (is_driver_gone(daemon))
		return err_explain(err, ERR_UNAVAILABLE, DRIVER_GONE,
			"start sandlotd again, which starts both; the log says why it ended",
			"%s ended while sandlotd started, or does not answer", name_helper(daemon));
	if (strcmp(daemon->api.unready.message, err->message) != 0)
		log_error("sandboxes cannot be served: %s", err->message);
	api_set_unready(&daemon->api, err);
	return 0;
}

/*
 * For the command line: the address; with TLS as a URL, and with the key by which it knows us, since no certificate is
 * made out for the loopback address.
 */
static void tell_address(const struct daemon *daemon)
{
	char address[BANNER_ADDRESS_MAX], pin[CERTIFICATE_PIN_MAX], line[256];

	banner_address(&daemon->listener, address);
	if (!daemon->transport.api.certificate) {
		privileged_setup_write_address(&daemon->setup, address);
		return;
	}
	certificate_pin(daemon->transport.api.certificate, pin);
	snprintf(line, sizeof(line), "https://%s %s", address, pin);
	privileged_setup_write_address(&daemon->setup, line);
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
		sandbox_network_reload_trust(daemon->engine);
	return false;
}

/* How long the main thread may sleep. */
static int sleep_ms(const struct daemon *daemon, uint64_t remind_ms)
{
	uint64_t now_ms = clock_steady_ms(), due_ms = remind_ms;

	if (!daemon->engine && daemon->reopen_ms < due_ms)
		due_ms = daemon->reopen_ms;
	return due_ms > now_ms ? (int)(due_ms - now_ms) : 0;
}

/* What is due without anybody asking. An error if the driver is gone. */
static int do_what_is_due(struct daemon *daemon, uint64_t *remind_ms)
{
	struct err err = {0};
	int r = 0;

	if (clock_steady_ms() >= *remind_ms) {
		*remind_ms += REMIND_MS;
		transport_remind(&daemon->transport);
	}
	if (!daemon->engine && clock_steady_ms() >= daemon->reopen_ms)
		r = serve_sandboxes(daemon, &err);
	return r;
}

/* Until a signal, a request to shut down, or the loss of the driver. Whether sandboxes end with us. */
static bool wait_for_end(struct daemon *daemon, int *exit_code)
{
	uint64_t remind_ms = clock_steady_ms() + REMIND_MS;
	struct pollfd fds[] = {{.fd = daemon->signal_fd, .events = POLLIN},
		{.fd = daemon->shutdown_fd, .events = POLLIN}, {.events = POLLIN}};

	for (;;) {
		int count;

		fds[2].fd = daemon->driver ? driver_gone_fd(daemon->driver) : -1;
		count = poll(fds, array_len(fds), sleep_ms(daemon, remind_ms));
		if (count > 0 && fds[1].revents)
			return true;
		if ((count > 0 && fds[2].revents) || do_what_is_due(daemon, &remind_ms) < 0) {
			/* Its sandboxes ended with it, and we may no longer start another. */
			log_error("%s is gone or hangs; leaving, so that sandlotd can be started "
				  "again",
				name_helper(daemon));
			*exit_code = DRIVER_GONE_STATUS;
			return false;
		}
		if (count > 0 && fds[0].revents && ends_us(daemon))
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

/* For whoever sees us start: a link that signs a browser in once, as the holder of the first token. None goes to a log. */
static void make_login_code(struct daemon *daemon, char code[SECRET_TEXT_MAX])
{
	struct principal operator= {.token_id = TOKEN_REQUEST_FIRST,
		.organization = OWNER_OPERATOR_ORGANIZATION,
		.user = OWNER_OPERATOR_USER,
		.scopes = SCOPE_ADMIN};
	struct err err;

	code[0] = '\0';
	if (!getenv("JOURNAL_STREAM"))
		(void)!ticket_table_issue(daemon->api.gate.tickets, &operator, LOGIN_PATH,
			clock_steady_ms(), LOGIN_LINK_LIFE_MS, code, &err);
}

static int open_all(struct daemon *daemon, struct err *err)
{
	char code[SECRET_TEXT_MAX];
	int r;

	fail_point_open(daemon->settings.data_dir);
	if ((r = descriptors_open(&daemon->settings, &daemon->plan, err)) < 0 ||
		(r = take_signals(daemon, err)) < 0 ||
		(r = issuer_open(&daemon->settings, &daemon->issuer, err)) < 0 ||
		(daemon->driver_kind->check_user &&
			(r = daemon->driver_kind->check_user(err)) < 0) ||
		(r = privileged_setup_open(&daemon->settings, &daemon->setup, err)) < 0 ||
		(r = transport_listen(
			 daemon->settings.api_bind, "--api-bind", &daemon->listener, err)) < 0 ||
		(r = listener_open_unix(daemon->setup.api_socket, daemon->setup.owner,
			 daemon->setup.gid, &daemon->local_listener, err)) < 0 ||
		(r = transport_listen(daemon->settings.preview_bind, "--preview-bind",
			 &daemon->preview_listener, err)) < 0 ||
		(r = transport_check(&daemon->settings, &daemon->listener,
			 &daemon->preview_listener, err)) < 0 ||
		(r = prepare_driver(daemon, err)) < 0 ||
		(r = privileged_setup_drop_privileges(&daemon->setup, err)) < 0 ||
		(r = transport_open(&daemon->settings, &daemon->transport, &daemon->listener,
			 &daemon->preview_listener, daemon->plan.tls_crowd, err)) < 0 ||
		(r = state_open(&daemon->settings, &daemon->setup, &daemon->state, err)) < 0 ||
		(r = open_traces(daemon, err)) < 0 || (r = open_templates(daemon, err)) < 0 ||
		(r = open_jobs(daemon, err)) < 0 || (r = open_executions(daemon, err)) < 0 ||
		(r = open_server(daemon, err)) < 0 || (r = open_previews(daemon, err)) < 0)
		return r;
	fail_point("daemon.server_opened");
	if ((r = serve_sandboxes(daemon, err)) < 0)
		return r;
	tell_address(daemon);
	make_login_code(daemon, code);
	banner_print(daemon->settings.data_dir, &daemon->listener, code,
		daemon->engine ? NULL : &daemon->api.unready);
	return 0;
}

/* With or without a driver that could be opened: a keeper of another version is ended so too. */
static int end_sandboxes(struct daemon *daemon, struct err *err)
{
	const struct driver_kind *kind = daemon->driver_kind;

	if (daemon->driver)
		return daemon->driver->ops->shutdown(daemon->driver, err);
	return kind->end && !is_driver_gone(daemon) ? kind->end(&daemon->driver_config, err) : 0;
}

static void close_all(struct daemon *daemon, bool stop_all)
{
	struct err err;

	if (daemon->setup.address_fd > 0)
		privileged_setup_write_address(&daemon->setup, "");
	atomic_store(&daemon->api.is_leaving, true);
	if (daemon->jobs)
		jobs_stop(daemon->jobs);
	if (daemon->server)
		server_close(daemon->server, CLOSE_GRACE_MS);
	previews_close(daemon->previews);
	transport_close(&daemon->transport);
	late_executions_leave(daemon->api.late_executions);
	jobs_close(daemon->jobs);
	layer_collector_stop(daemon->layer_collector);
	contexts_leave(daemon->contexts);
	executions_leave(daemon->executions);
	runtime_pool_close(daemon->api.runtime_pool);
	engine_close(daemon->engine);
	executions_free(daemon->executions);
	contexts_free(daemon->contexts);
	artifact_store_close(daemon->artifacts);
	launches_free(daemon->launches);
	trace_export_close(daemon->traces);
	projects_free(daemon->projects);
	event_bus_free(daemon->bus);
	templates_close(daemon->templates);
	state_close_logs(&daemon->state);
	if (stop_all && daemon->state.store &&
		(end_sandboxes(daemon, &err) < 0 ||
			store_sandbox_end_all(daemon->state.store, END_OPERATOR,
				"sandlot was shut down", &err) < 0))
		log_error("end the sandboxes: %s", err.message);
	if (daemon->driver)
		daemon->driver->ops->close(daemon->driver);
	state_close(&daemon->state);
	ticket_table_free(daemon->api.gate.tickets);
	issuer_close(&daemon->issuer);
	host_report_close(daemon->setup.report);
	free(daemon->host_list);
	idempotency_keys_free(daemon->api.idempotency_keys);
	json_decref(daemon->api.openapi);
}

/* Ends what we started for the driver, for nothing. It has no sandboxes yet. */
static void undo_prepare(struct daemon *daemon)
{
	struct err err;

	if (daemon->has_prepared && open_driver(daemon, &err) == 0)
		(void)!daemon->driver->ops->shutdown(daemon->driver, &err);
}

/* Of a database that is not to be used, the commands that resolve it, as they are to be typed. */
static void complain(const struct daemon *daemon, const struct err *err)
{
	const char *dir = daemon->settings.data_dir;

	fprintf(stderr, "sandlotd: %s\n", err->message);
	if (strcmp(err->code, "database_empty") == 0 || strcmp(err->code, "database_older") == 0)
		fprintf(stderr,
			"  try: sandlot restore --data-dir %s           to bring back the last "
			"backup\n"
			"   or: sandlot restore --data-dir %s --accept  to start as it is; "
			"workspaces that it does not know are kept as orphans\n",
			dir, dir);
	else if (strcmp(err->code, "database_damaged") == 0)
		fprintf(stderr,
			"  try: sandlot restore --data-dir %s          to bring back the last "
			"backup\n"
			"   or: sandlot restore --data-dir %s --empty  to start with an empty one; "
			"all workspaces are kept as orphans\n",
			dir, dir);
	else if (err->remedy[0])
		fprintf(stderr, "  try: %s\n", err->remedy);
}

/*
 * The status with which we leave when we cannot start. A new start cures a keeper that died; it mends no database, for
 * which the status is one of its own, so that no supervisor tries for ever (data/sandlot.service.in).
 */
static int exit_status(const struct err *err)
{
	static const struct {
		const char *code;
		int status;
	} statuses[] = {
		{DRIVER_GONE, DRIVER_GONE_STATUS},
		{"database_damaged", DATABASE_STATUS},
		{"database_too_new", DATABASE_STATUS},
	};

	for (size_t i = 0; i < array_len(statuses); i++) {
		if (strcmp(err->code, statuses[i].code) == 0)
			return statuses[i].status;
	}
	return err_class((enum err_kind)err->kind)->exit_code;
}

/* A name that was typed wrongly would be ignored in silence. */
static void warn_of_variables(void)
{
	struct err err;

	for (char **variable = environ; *variable; variable++) {
		if (settings_explain_variable(*variable, &err))
			log_warning("%s; %s", err.message, err.remedy);
	}
}

int main(int argc, char *argv[])
{
	static struct daemon daemon = {.signal_fd = -1, .shutdown_fd = -1, .state = STATE_CLOSED};
	enum log_level level;
	struct err err = {0};
	int exit_code = 0, r;
	bool stop_all;

	heap_use_few_arenas();
	log_open("sandlotd", LOG_INFO);
	r = settings_read(argc, argv, &daemon.settings, &err);
	if (r == 0 && read_log_level(daemon.settings.log_level, &level) < 0)
		r = err_set(&err, ERR_INVALID, "log-level must be debug, info, warning or error");
	if (r == 0)
		r = template_check_list(daemon.settings.templates, &err);
	if (r == 0)
		r = registry_mirror_check(daemon.settings.registry_mirror, &err);
	if (r == 0)
		r = short_name_check(daemon.settings.short_names, &err);
	if (r == 0 && strcmp(daemon.settings.audit_exec, "hash") != 0 &&
		strcmp(daemon.settings.audit_exec, "text") != 0)
		r = err_set(&err, ERR_INVALID, "audit-exec must be hash or text");
	if (r == 0)
		r = network_default_check(&daemon.settings.network, &err);
	if (r == 0)
		r = pool_plan_check(daemon.settings.pool, &err);
	if (r == 0)
		r = driver_table_find(daemon.settings.driver, &daemon.driver_kind, &err);
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
		warn_of_variables();
		r = open_all(&daemon, &err);
	}
	if (r < 0) {
		complain(&daemon, &err);
		undo_prepare(&daemon);
		close_all(&daemon, false);
		return exit_status(&err);
	}
	stop_all = wait_for_end(&daemon, &exit_code);
	log_info("leaving");
	close_all(&daemon, stop_all);
	return exit_code;
}
