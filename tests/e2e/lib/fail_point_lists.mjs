// SPDX-License-Identifier: Apache-2.0
// Which fail point is passed by what: every row is a test of one of tests/e2e/fail_points*.test.mjs, and together they
// are all points (fail_points.test.mjs).

const BUILD = ['build.groups_made', 'build.child_cloned', 'build.network_sent', 'build.begun', 'build.link_sent', 'build.groups_joined', 'build.disk_opened', 'build.storage_prepared', 'build.root_entered', 'build.network_joined', 'build.confined'];
const RUN = ['run.driver_started', 'run.agent_met', 'run.prepared', 'run.before_row', 'run.row_written', 'run.commands_started'];
const END = ['end.agent_asked', 'end.driver_stopped', 'end.link_closed', 'kill.reaped', 'kill.groups_empty', 'kill.groups_removed'];
const AUDIT = ['audit.entry_kept', 'audit.entries_written', 'audit.entries_dropped'];

/** Which points an operation passes; each is crashed at. */
export const CRASHES = {
  create: ['create.row_written', 'create.row_committed', ...RUN, 'build.begun', 'build.link_sent', 'build.confined', 'disk.pool_disk_moved', 'disk.pool_disk_named', 'disk.pool_disk_linked', ...AUDIT],
  'create that does not wait': ['create.row_committed', 'late_create.image_taken', 'run.driver_started', 'run.row_written'],
  'create that takes over one built ahead': ['build.ahead_handed_over'],
  'create with a key': ['create.key_reserved', 'create.row_committed', 'run.row_written', 'create.key_answered'],
  'create on a kept workspace': ['create.row_committed', 'run.driver_started', 'run.row_written', 'build.storage_prepared'],
  start: ['start.claimed', ...RUN, ...BUILD],
  'start within a quota': ['start.claim_written', 'run.driver_started'],
  'start after long': ['disk.mounted'],
  stop: [...END, 'stop.before_row', 'stop.row_written', 'disk.cleared_up', 'disk.unmounted'],
  pause: ['pause.freezer_written', 'pause.before_row', 'pause.row_written'],
  resume: ['pause.freezer_written', 'pause.before_row', 'pause.row_written'],
  reset: ['end.driver_stopped', 'reset.row_written', 'clean.layer_discarded', 'clean.cleaned', 'reset.cleaned', 'run.row_written'],
  'reset of a stopped one': ['clean.layer_discarded', 'clean.cleaned', 'reset.cleaned'],
  delete: [...END.slice(1), 'clean.cleaned', 'delete.cleaned', 'delete.row_deleted'],
  purge: ['kill.groups_removed', 'purge.marked', 'disk.let_go', 'disk.thrown_away', 'clean.cleaned', 'purge.cleaned', 'purge.logs_removed', 'purge.rows_half_deleted', 'purge.rows_deleted', 'disk.unmounted'],
  'purge of a disk that is used again': ['disk.refurnished'],
  'purge of a kept workspace': ['purge.held', 'purge.cleaned', 'purge.rows_deleted', 'trash.in_shredder'],
  snapshot: ['snapshot.row_written', 'snapshot.frozen', 'snapshot.copied', 'snapshot.written', 'snapshot.taken'],
  prune: ['collect.marked', 'collect.dropped', 'trash.in_shredder'],
  'removal of a snapshot': ['snapshot.hidden', 'snapshot.dropped'],
  restore: ['restore.row_written', 'snapshot.loaded', 'snapshot.placed'],
  'pull of an image': ['blob.synced', 'layer.begun', 'layer.unpacked', 'layer.renamed', 'layer.stacked', 'template.made', 'template.kept'],
  'files of a build': ['run.agent_met', 'capture.packed', 'layer.unpacked', 'layer.renamed', 'layer.stacked'],
  'unpacking of an archive': ['blob.synced', 'layer.begun', 'layer.unpacked', 'layer.renamed', 'layer.stacked'],
  build: ['layer.begun', 'capture.packed', 'layer.unpacked', 'layer.renamed', 'template.kept'],
  'template of a snapshot': ['blob.synced', 'capture.packed', 'layer.unpacked', 'layer.renamed'],
  export: ['blob.synced', 'export.packed'],
  fork: ['snapshot.mounted', 'snapshot.taken', 'snapshot.loaded', 'snapshot.mapped', 'snapshot.placed', 'snapshot.dropped'],
  change: ['change.resized', 'change.row_written'],
  'launch that adds a member': ['member.rows_added'],
  process: ['process.log_opened', 'process.row_inserted', 'process.sent', 'process.end_claimed', 'process.end_written', 'process.end_reported'],
  'files of a project': ['project.content_written', 'project.rows_written', 'project.linked'],
  'removal of a file': ['project.file_deleted'],
  'move of a file': ['project.file_moved'],
  'removal of a project': ['project.set_aside', 'project.row_deleted'],
  upload: ['upload.opened', 'upload.received', 'upload.written'],
};

/** Where a step can also be made to fail, as on a full disk. */
export const FAILURES = {
  create: ['create.row_written', 'run.before_row'],
  'create on a kept workspace': ['create.row_written', 'run.before_row'],
  start: ['run.before_row', 'build.groups_made', 'build.disk_opened', 'build.storage_prepared', 'build.root_entered', 'build.network_joined'],
  'start after long': ['disk.mounted'],
  stop: ['stop.before_row'],
  pause: ['pause.before_row'],
  resume: ['pause.before_row'],
  reset: ['clean.cleaned', 'reset.cleaned'],
  delete: ['clean.cleaned'],
  purge: ['clean.cleaned', 'purge.cleaned', 'purge.rows_half_deleted'],
  process: ['process.log_opened'],
  snapshot: ['snapshot.frozen'],
  restore: ['snapshot.loaded'],
  fork: ['snapshot.loaded'],
};

/** What a daemon finds when it starts. */
export const STARTS = {
  'with sandboxes that run': ['daemon.server_opened', 'reconcile.link_made', 'reconcile.adopted', 'reconcile.rows_settled', 'reconcile.strangers_dropped'],
  'without a keeper': ['daemon.keeper_started', 'keeper.disks_opened', 'keeper.groups_swept', 'reconcile.lost_row_written'],
  'with a create that was cut short': ['reconcile.unfinished_stopped', 'reconcile.unfinished_cleaned'],
  'with a purge that was cut short': ['reconcile.purge_cleaned'],
};
export const UNDONE_CREATE = ['create.undo_stopped', 'create.undo_cleaned'];
export const OWN_END = 'settle.link_closed';

/** Points that each passes several times, and how many go before: it is cut short in the middle. */
export const MEMBER_POINTS = {
  create: [['run.driver_started', 1], ['run.row_written', 2], ['build.begun', 2]],
  start: [['run.driver_started', 1], ['build.begun', 1]],
  stop: [['end.driver_stopped', 1], ['kill.reaped', 1]],
  pause: [['pause.freezer_written', 1]],
  resume: [['pause.freezer_written', 1]],
  reset: [['end.driver_stopped', 1], ['reset.cleaned', 0], ['run.driver_started', 1]],
  delete: [['end.driver_stopped', 1], ['kill.groups_removed', 2], ['delete.row_deleted', 0]],
  purge: [['end.link_closed', 1], ['purge.marked', 0], ['purge.rows_deleted', 0]],
  snapshot: [['snapshot.frozen', 0]],
  fork: [['snapshot.placed', 0], ['run.driver_started', 1]],
};

export const POOL_POINTS = {
  fill: ['pool.row_added', 'pool.sandbox_made', 'pool.ready_written', 'build.groups_made', 'build.begun', 'build.link_sent'],
  drain: ['pool.drained', 'kill.reaped', 'kill.groups_removed', 'disk.let_go', 'disk.thrown_away'],
  claim: ['keeper.limits_set', 'keeper.disk_resized', 'claim.limits_set', 'claim.row_written', 'claim.committed', 'keeper.renamed', 'claim.applied'],
};
/** Made to fail as well. */
export const POOL_FAILURE = 'claim.row_written';
/** Of each migration; the first can also be made to fail, and so can the token of the first start. */
export const MIGRATION_POINTS = ['migration.due', 'migration.applied', 'migration.committed'];
export const FIRST_START = { token: 'daemon.token_written', migration: 'migration.applied' };

const flat = (lists) => Object.values(lists).flat();
/** The names of all points that a process dies at in some test, and of those that are made to fail. */
export const CRASHED = new Set([
  ...flat(CRASHES), ...flat(STARTS), ...UNDONE_CREATE, OWN_END, ...flat(MEMBER_POINTS).map(([point]) => point), ...flat(POOL_POINTS), ...MIGRATION_POINTS, FIRST_START.token,
]);
export const FAILED = new Set([...flat(FAILURES), POOL_FAILURE, ...flat(FIRST_START)]);

/** One operation or point alone, to look at it. */
export const ONLY = process.env.FAIL_POINT;
export const chosen = (points, name) => points.filter((point) => !ONLY || [point].flat()[0] === ONLY || name === ONLY);
