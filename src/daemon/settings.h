/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings, one row each in settings.c. A setting `name` comes from, in rising order of weight,
 * its default, the line `name = value` of the configuration file, the environment variable
 * SANDLOT_NAME, and the flag --name.
 */
#pragma once

#include "base/err.h"
#include "model/sandbox/network_default.h"
#include "model/sandbox/sandbox_record.h"

#include <stdint.h>

#define SETTINGS_NEVER UINT64_MAX /* as int64_t: SANDBOX_NO_LIMIT */

struct settings {
	const char *config;
	const char *data_dir;
	const char *api_bind;
	const char *api_hosts;
	const char *preview_bind;
	const char *preview_domain;
	const char *tls_certificate;
	const char *tls_key;
	const char *preview_tls_certificate;
	const char *preview_tls_key;
	bool allow_plain;
	uint64_t api_connections;
	uint64_t preview_connections;
	uint64_t preview_source_connections;
	uint64_t preview_sandbox_connections;
	uint64_t preview_rate;
	uint64_t preview_timeout_s;
	uint64_t login_life_s;
	const char *user;
	const char *log_level;
	const char *jwt_issuer;
	const char *jwt_audience;
	const char *jwt_keys;
	const char *jwt_organization_claim;
	const char *jwt_user_claim;
	const char *jwt_scopes_claim;
	const char *templates;
	const char *registry, *registry_prefix, *registry_mirror, *registry_plain, *registry_allow,
		*registry_ca, *registry_auth, *short_names, *runtime_pool;
	uint64_t registry_stall_s;
	const char *apt_mirror, *pip_index, *npm_registry, *apk_mirror, *go_proxy, *package_ca;
	const char *allow_missing;
	uint64_t idle_timeout_s;	/* or SETTINGS_NEVER */
	uint64_t workspace_retention_s; /* likewise */
	uint64_t layer_retention_s;	/* likewise */
	uint64_t stop_grace_ms;
	uint64_t exec_output_max;
	uint64_t output_max;
	uint64_t output_sandbox_max;
	uint64_t process_history;
	uint64_t execution_history, execution_keep_s;
	const char *pool;
	uint64_t pool_max, pool_reserve;
	uint64_t ready_timeout_s;
	uint64_t launch_install_s, launch_backend_s, launch_frontend_s;
	uint64_t launch_history;
	const char *otlp_endpoint;
	uint64_t project_file_max; /* bytes of a file */
	char *project_types;
	uint64_t memory_reserve;
	uint64_t disk_reserve;
	bool disk_limits;
	uint64_t keeper_timeout_s;
	const char *driver; /* a name of driver/driver_table.h */
	uint64_t workers;
	uint64_t backup_keep;
	uint64_t answer_memory;
	uint64_t audit_keep;
	const char *audit_exec;
	const char *quota_organization;
	const char *quota_user;
	struct resources resources;	/* of a sandbox that asks for none */
	struct network_default network; /* likewise */
	const char *resolver;
	uint64_t bandwidth;
	uint64_t connections;
	uint64_t egress_connections;
	uint64_t egress_lookups;
	uint64_t archive_downloads;
	bool stop_all;
	bool help, version;
};

/* Reads them all. Strings live as long as the process. */
int settings_read(int argc, char *argv[], struct settings *ret_settings, struct err *err)
	must_check;

/*
 * Whether a variable of the environment ("NAME=value") looks like a setting and is none, as after a typing error: then
 * *ret_err says so, and what may have been meant. It is no reason to refuse the start: supervisors of services add such names
 * too (SANDLOT_SERVICE_HOST).
 */
bool settings_explain_variable(const char *variable, struct err *ret_err);

void settings_print_help(void);
