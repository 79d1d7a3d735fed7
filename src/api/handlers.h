/* SPDX-License-Identifier: Apache-2.0 */
/* Every handler; the table in routes.c says which route each serves. */
#pragma once

#include "api/api.h"

#define HANDLER(name) int name(struct request *req, void *context, struct err *err)

/* service.c */
HANDLER(service_health);
HANDLER(service_ready);
HANDLER(service_version);
HANDLER(service_openapi);
HANDLER(service_shutdown);

/* tokens.c, tickets.c */
HANDLER(tokens_create);
HANDLER(tokens_list);
HANDLER(tokens_get);
HANDLER(tokens_revoke);
HANDLER(tickets_create);

/* audits.c */
HANDLER(audits_list);
HANDLER(audits_verify);

/* quotas.c */
HANDLER(quotas_own);
HANDLER(quotas_get);
HANDLER(quotas_put);
HANDLER(quotas_delete);

/* secrets.c */
HANDLER(secrets_put);
HANDLER(secrets_list);
HANDLER(secrets_delete);

/* sandboxes.c */
HANDLER(sandboxes_create);
HANDLER(sandboxes_ensure);
HANDLER(sandboxes_list);
HANDLER(sandboxes_get);
HANDLER(sandboxes_patch);
HANDLER(sandboxes_delete);
HANDLER(sandboxes_start);
HANDLER(sandboxes_stop);
HANDLER(sandboxes_pause);
HANDLER(sandboxes_resume);
HANDLER(sandboxes_reset);
HANDLER(sandboxes_purge);
HANDLER(sandboxes_stats);
HANDLER(sandboxes_events);

/* exec.c */
HANDLER(exec_run);

/* ports.c */
HANDLER(ports_list);
HANDLER(ports_connect);

/* preview_links.c */
HANDLER(preview_links_create);
HANDLER(preview_links_list);
HANDLER(preview_links_delete);

/* preview_ports.c */
HANDLER(preview_ports_patch);

/* processes.c */
HANDLER(processes_list);
HANDLER(processes_get);
HANDLER(processes_kill);
HANDLER(processes_wait);
HANDLER(processes_output);
HANDLER(processes_stdin);
HANDLER(processes_signal);
HANDLER(processes_resize);

/* terminals.c */
HANDLER(terminals_open);

/* files.c */
HANDLER(files_read);
HANDLER(files_head);
HANDLER(files_write);
HANDLER(files_delete);
HANDLER(files_list);
HANDLER(files_stat);
HANDLER(files_mkdir);
HANDLER(files_move);

/* archives.c */
HANDLER(archives_unpack);
HANDLER(archives_pack);

/* networks.c */
HANDLER(networks_get);

/* watches.c */
HANDLER(watches_open);

/* The bodies they take. */
extern const struct fields tokens_fields;
extern const struct fields tickets_fields;
extern const struct fields preview_links_fields;
extern const struct fields preview_ports_fields;
extern const struct fields processes_stdin_fields;
extern const struct fields processes_signal_fields;
extern const struct fields processes_resize_fields;
extern const struct fields files_mkdir_fields;
extern const struct fields files_move_fields;
extern const struct fields quotas_fields;
extern const struct fields secrets_fields;
