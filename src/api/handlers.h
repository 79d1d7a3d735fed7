/* SPDX-License-Identifier: Apache-2.0 */
/* Every handler; the table in routes.c says which route each serves. */
#pragma once

#include "api/api.h"

#define HANDLER(name) int name(struct request *req, void *context, struct err *err)

/* e2b/e2b.c */
HANDLER(e2b_get);
HANDLER(e2b_post);
HANDLER(e2b_delete);
/* e2b/e2b_upload.c */
HANDLER(e2b_upload_write);
/* mcp/mcp.c */
HANDLER(mcp_post);

/* service.c */
HANDLER(service_health);
HANDLER(service_ready);
HANDLER(service_version);
HANDLER(service_drivers);
HANDLER(service_openapi);
HANDLER(service_shutdown);
HANDLER(service_backups);
HANDLER(doctor_report);

/* tokens.c, tickets.c */
HANDLER(tokens_create);
HANDLER(tokens_list);
HANDLER(tokens_get);
HANDLER(tokens_revoke);
HANDLER(tickets_create);

/* metrics.c */
HANDLER(metrics_read);

/* output_search.c */
HANDLER(output_search);

/* logins.c */
HANDLER(logins_create);
HANDLER(logins_follow_link);
HANDLER(logins_end_own);
HANDLER(logins_get_own);
HANDLER(logins_list);
HANDLER(logins_end);

/* console.c */
HANDLER(console_page);

/* audits.c */
HANDLER(audits_list);
HANDLER(audits_verify);

/* quotas.c */
HANDLER(quotas_own);
HANDLER(quotas_owners);
HANDLER(quotas_get);
HANDLER(quotas_put);
HANDLER(quotas_delete);

/* pools.c */
HANDLER(pools_list);

/* orphans.c */
HANDLER(orphans_list);
HANDLER(orphans_adopt);
HANDLER(orphans_purge);

/* template_handlers.c */
HANDLER(templates_create);
HANDLER(templates_import_archive);
HANDLER(templates_put_files);
HANDLER(templates_list);
HANDLER(templates_get);
HANDLER(templates_patch);
HANDLER(templates_export);
HANDLER(templates_clear_cache);
HANDLER(templates_prune);
HANDLER(templates_delete);
HANDLER(templates_build);
HANDLER(templates_log);
HANDLER(templates_cancel);

/* snapshot_handlers.c */
HANDLER(snapshots_create);
HANDLER(snapshots_list);
HANDLER(snapshots_get);
HANDLER(snapshots_delete);
HANDLER(snapshots_restore_sandbox);
HANDLER(snapshots_fork_sandbox);
HANDLER(snapshots_undo);
HANDLER(snapshots_list_changes);

/* launch_handlers.c */
extern const struct fields launch_create_fields, launch_sandbox_fields, launch_retry_fields;
HANDLER(launches_create);
HANDLER(launches_create_in_sandbox);
HANDLER(launches_list);
HANDLER(launches_get_stats);
HANDLER(launches_get_one);
HANDLER(launches_events);
HANDLER(launches_cancel_one);
HANDLER(launches_retry_one);
HANDLER(launches_detect);
HANDLER(launches_validate);

/* project_handlers.c */
HANDLER(projects_create_one);
HANDLER(projects_list);
HANDLER(projects_get);
HANDLER(projects_patch);
HANDLER(projects_delete);
HANDLER(projects_scrub_all);

/* project_files.c */
HANDLER(project_files_put);
HANDLER(project_files_post);
HANDLER(project_files_list);
HANDLER(project_files_get);
HANDLER(project_files_patch);
HANDLER(project_files_delete);
HANDLER(project_archive_put);
HANDLER(project_archive_get);

/* secrets.c */
HANDLER(secrets_put);
HANDLER(secrets_list);
HANDLER(secrets_delete);

/* sandboxes.c */
HANDLER(sandboxes_create);
HANDLER(sandboxes_ensure);
HANDLER(sandboxes_create_in_project);
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
HANDLER(sandboxes_stats_history);

/* events.c */
HANDLER(events_of_sandbox);
HANDLER(events_of_owner);

/* jobs.c */
HANDLER(jobs_list);
HANDLER(jobs_get);
HANDLER(jobs_log);
HANDLER(jobs_cancel);
HANDLER(jobs_back_up);

/* contexts.c */
extern const struct fields contexts_fields;
HANDLER(contexts_create);
HANDLER(contexts_all);
HANDLER(contexts_get);
HANDLER(contexts_interrupt);
HANDLER(contexts_restart);
HANDLER(contexts_delete);

/* executions.c */
extern const struct fields executions_fields, executions_fresh_fields;
HANDLER(executions_run);
HANDLER(executions_list);
HANDLER(executions_get);
HANDLER(executions_events);
HANDLER(executions_cancel);
HANDLER(executions_stats);
HANDLER(executions_retry);

/* function_handlers.c */
extern const struct fields functions_fields;
HANDLER(functions_put);
HANDLER(functions_get);
HANDLER(functions_list);
HANDLER(functions_versions);
HANDLER(functions_delete);
HANDLER(functions_invoke);

/* fresh_executions.c */
HANDLER(fresh_executions_run);

/* artifact_handlers.c */
HANDLER(artifacts_read);

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

/* dependency_handlers.c */
HANDLER(dependency_get);
HANDLER(dependency_add);

/* watches.c */
HANDLER(watches_open);

/* The bodies they take. */
extern const struct fields tokens_fields;
extern const struct fields tickets_fields;
extern const struct fields logins_fields;
extern const struct fields preview_links_fields;
extern const struct fields preview_ports_fields;
extern const struct fields processes_stdin_fields;
extern const struct fields processes_signal_fields;
extern const struct fields processes_resize_fields;
extern const struct fields files_mkdir_fields;
extern const struct fields files_move_fields;
extern const struct fields quotas_fields;
extern const struct fields orphans_fields;
extern const struct fields secrets_fields;
extern const struct fields templates_fields, templates_patch_fields, templates_build_fields,
	templates_prune_fields;
extern const struct fields snapshots_take_fields;
extern const struct fields snapshots_restore_fields;
extern const struct fields snapshots_fork_fields;
