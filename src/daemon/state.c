/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/state.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/audit/audit_writer.h"
#include "core/engine/backups.h"
#include "core/secret/secret_store.h"
#include "core/token/token_request.h"
#include "model/access/owner.h"
#include "store/access/store_audit.h"
#include "store/access/store_quota.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What `sandlot restore` leaves: an operator wants the database as it is, this once. */
static void accept_path(const struct settings *settings, char path[PATH_MAX])
{
	snprintf(path, PATH_MAX, "%s/state/accept", settings->data_dir);
}

static int open_database(const struct settings *settings, const struct privileged_setup *setup,
	struct state *state, bool *ret_is_accepted, struct err *err)
{
	struct store_options options = {.stamp_fd = setup->stamp_fd,
		.has_workspaces = setup->has_workspaces,
		.backup = state->backup_rule};
	char path[PATH_MAX], accept[PATH_MAX];
	int r;

	accept_path(settings, accept);
	options.is_accepted = *ret_is_accepted = access(accept, F_OK) == 0;
	snprintf(path, sizeof(path), "%s/state/sandlot.db", settings->data_dir);
	r = store_open_checked(path, &options, &state->store, err);
	if (r < 0 || !options.is_accepted)
		return r;
	log_warning("an operator accepted the database as it is; workspaces that it does not know "
		    "are kept as orphans");
	if (unlink(accept) < 0)
		return err_sys(err, "remove %s", accept);
	return 0;
}

static int set_quotas(const struct settings *settings, struct store *store, struct err *err)
{
	struct quota organization, user;

	if (quota_parse(settings->quota_organization, &organization) < 0 ||
		quota_parse(settings->quota_user, &user) < 0)
		return err_set(err, ERR_INVALID,
			"quota-organization and quota-user are lists of name=limit, such as "
			"sandboxes=50,memory=64Gi");
	store_quota_set_defaults(store, &organization, &user);
	return 0;
}

/* The token of the first administrator. Written only if it is another one: the disk may be full. */
static int put_first_token(struct privileged_setup *setup, struct store *store, struct err *err)
{
	struct token_record admin = {.id = TOKEN_REQUEST_FIRST,
		.owner = {.organization = OWNER_OPERATOR_ORGANIZATION, .user = OWNER_OPERATOR_USER},
		.scopes = SCOPE_ADMIN,
		.created_at_ms = clock_wall_ms()};
	unsigned char hash[SECRET_HASH_LEN];
	struct token_record known;
	int r;

	secret_hash(setup->token, hash);
	explicit_bzero(setup->token, sizeof(setup->token));
	r = store_token_find(store, hash, admin.created_at_ms, &known, err);
	if (r == 0 && strcmp(known.id, admin.id) == 0 && known.scopes == admin.scopes)
		return 0;
	return store_token_put(store, &admin, hash, err);
}

/* The end of the audit log goes to the daemon's own log too: whoever cuts one can be caught by the
 * other. */
static void tell_audit_head(struct store *store)
{
	struct audit_mark head = store_audit_head(store);
	char text[AUDIT_MARK_TEXT];

	audit_mark_format(&head, text);
	log_info("the audit log ends with %s", text);
}

static int open_audit_writer(
	const struct settings *settings, struct state *state, bool is_accepted, struct err *err)
{
	struct audit_entry entry = {.action = "daemon.start", .detail = SANDLOT_VERSION};
	char path[PATH_MAX];
	int r;

	snprintf(path, sizeof(path), "%s/state/audit.ring", settings->data_dir);
	r = audit_writer_open(state->store, path, settings->audit_keep, &state->audit_writer, err);
	if (r < 0)
		return r;
	tell_audit_head(state->store);
	audit_writer_put(state->audit_writer, &entry);
	if (is_accepted)
		audit_writer_put(state->audit_writer,
			&(struct audit_entry){.action = "state.accept",
				.detail = "a database that is empty, older or restored"});
	return 0;
}

static int open_secret_store(const struct settings *settings, struct state *state, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/state/secrets.key", settings->data_dir);
	return secret_store_open(state->store, path, &state->secret_store, err);
}

/* A directory below state/, made if it is missing. */
static int open_dir(const char *data_dir, const char *name, int *ret_fd, struct err *err)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/state/%s", data_dir, name);
	if (mkdir(path, 0700) < 0 && errno != EEXIST)
		return err_sys(err, "make %s", path);
	*ret_fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *ret_fd < 0 ? err_sys(err, "open %s", path) : 0;
}

static int open_dirs(const char *data_dir, struct state *state, struct err *err)
{
	const struct {
		const char *name;
		int *fd;
	} dirs[] = {
		{"logs", &state->logs_fd},
		{"unfinished", &state->unfinished_fd},
		{"baselines", &state->baselines_fd},
		{"jobs", &state->jobs_fd},
		{"blobs", &state->blobs_fd},
		{"artifacts", &state->artifacts_fd},
		{"projects", &state->projects_fd},
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < array_len(dirs); i++)
		r = open_dir(data_dir, dirs[i].name, dirs[i].fd, err);
	return r;
}

int state_open(const struct settings *settings, struct privileged_setup *setup, struct state *state,
	struct err *err)
{
	bool is_accepted;
	int r;

	snprintf(state->backup_dir, sizeof(state->backup_dir), "%s/state/backups",
		settings->data_dir);
	state->backup_rule = (struct store_backup_rule){.dir = state->backup_dir,
		.keep = (unsigned)settings->backup_keep,
		.reserve_bytes = settings->disk_reserve};
	if ((r = open_database(settings, setup, state, &is_accepted, err)) < 0 ||
		(r = set_quotas(settings, state->store, err)) < 0 ||
		(r = put_first_token(setup, state->store, err)) < 0 ||
		(r = open_audit_writer(settings, state, is_accepted, err)) < 0 ||
		(r = backups_open(state->store, &state->backup_rule, &state->backups, err)) < 0 ||
		(r = open_secret_store(settings, state, err)) < 0)
		return r;
	return open_dirs(settings->data_dir, state, err);
}

void state_close_logs(struct state *state)
{
	struct audit_entry entry = {.action = "daemon.stop", .detail = SANDLOT_VERSION};

	if (state->audit_writer) {
		audit_writer_put(state->audit_writer, &entry);
		audit_writer_close(state->audit_writer);
		tell_audit_head(state->store);
	}
	backups_close(state->backups);
}

void state_close(struct state *state)
{
	secret_store_close(state->secret_store);
	store_close(state->store);
	fd_close(state->logs_fd);
	fd_close(state->unfinished_fd);
	fd_close(state->baselines_fd);
	fd_close(state->jobs_fd);
	fd_close(state->blobs_fd);
	fd_close(state->artifacts_fd);
	fd_close(state->projects_fd);
}
