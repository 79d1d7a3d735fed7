// SPDX-License-Identifier: Apache-2.0
// All that the console says, in English. Another language is another file with the same keys.
import { plural } from '../lib/format';

const map = (entries: Record<string, string>): Record<string, string> => entries;

export const text = {
  // Said in many places.
  cancel: 'Cancel', close: 'Close', save: 'Save', open: 'Open', copy: 'Copy', copyFailed: 'It could not be copied', retry: 'Try again', refresh: 'Refresh', more: 'Show more', all: 'All', no: 'no',
  loading: 'Loading', failed: 'That did not work', requestId: 'Request', skip: 'Skip to content', menu: 'Menu', newTab: 'opens a new tab',
  name: 'Name', id: 'Id', kind: 'Kind', status: 'Status', size: 'Size', path: 'Path', created: 'Created', expires: 'Expires', actions: 'Actions', command: 'Command',
  of: (used: string, limit: string) => `${used} of ${limit}`,
  ofAll: (limit: string) => `of ${limit}`,
  count: (count: number) => plural(count, 'sandbox', 'sandboxes'),
  typeToConfirm: (word: string) => `Type “${word}” to confirm`,
  version: (version: string) => `Version ${version}`,
  unreachable: 'The server cannot be reached',
  reconnecting: 'The server is restarting or out of reach. Reconnecting…',
  noPage: 'There is no such page', noPageAbout: 'The address may be old, or have a mistake in it.',
  signedInAs: (name: string) => `Signed in as ${name}`,
  signOut: 'Sign out',
  theme: { label: 'Theme', system: 'As the system', dark: 'Dark', light: 'Light' },

  nav: { label: 'Main', sandboxes: 'Sandboxes', templates: 'Templates', projects: 'Projects', launches: 'Launches', functions: 'Functions', snapshots: 'Snapshots', jobs: 'Jobs', server: 'Server', host: 'Host', quotas: 'Owners and quotas', audit: 'Audit log', access: 'Access', tokens: 'Tokens', secrets: 'Secrets', connect: 'Connect', docs: 'API reference' },
  palette: { open: 'Search or jump to…', hint: 'A page, a sandbox, an action', none: 'Nothing has such a name.', theme: 'Switch between dark and light' },

  signIn: {
    title: 'Sign in to Sandlot', about: 'With a token of this server.', token: 'Token', button: 'Sign in', wrong: 'This token is not valid.',
    hint: 'The first one is in the file “token” of the data directory.',
  },

  statuses: { creating: 'Creating', running: 'Running', paused: 'Paused', stopped: 'Stopped', error: 'Failed' },
  verbs: { start: 'Start', stop: 'Stop', pause: 'Pause', resume: 'Resume', reset: 'Reset', delete: 'Delete', purge: 'Purge' },
  done: {
    start: (what: string) => `${what} runs`, stop: (what: string) => `${what} is stopped`, pause: (what: string) => `${what} is paused`, resume: (what: string) => `${what} goes on`,
    reset: (what: string) => `${what} was reset`, delete: (what: string) => `${what} was deleted; its workspace is kept`, purge: (what: string) => `Nothing is left of ${what}`,
  },
  questions: {
    word: 'purge',
    reset: { title: (what: string) => `Reset ${what}?`, about: 'All processes end, and agent_workspace, outputs and changes of the system are emptied. Other files of the workspace stay.' },
    delete: { title: (what: string) => `Delete ${what}?`, about: 'All processes end. The workspace is kept: a sandbox that is created with the same id takes it up again.' },
    purge: { title: (what: string) => `Purge ${what}?`, about: 'All processes end and all files are removed, the workspace as well. Nothing of it can be had again.' },
  },
  reasons: map({
    exited: 'It ended by itself', signal: 'A signal ended it', oom: 'It ran out of memory', timeout: 'It took longer than its timeout', pids_limit: 'It had too many processes', disk_full: 'Its disk is full', killed: 'It was stopped',
    idle: 'It was stopped because nobody used it', lifetime: 'Its lifetime was over', memory_pressure: 'The host ran short of memory', agent_lost: 'Its agent was lost', operator: 'The operator stopped it',
  }),
  networkModes: { internet: 'Internet', allowlist: 'Only what is allowed', none: 'No network' },

  overview: {
    counts: (all: number, running: number) => `${plural(all, 'sandbox', 'sandboxes')}, ${running} running`,
    search: 'Name, template, label=value', statusFilter: 'Status', columns: ['Sandbox', 'Template', 'Owner', 'CPU', 'Memory', 'Idle stop', 'Created', ''],
    none: 'No sandboxes yet', noneAbout: 'A sandbox is an isolated Linux machine that is there in milliseconds. Create one, and open a terminal in it.',
    noMatch: 'None fits', noMatchAbout: 'No sandbox has these words and this status.', clear: 'Show all',
    choose: (name: string) => `Choose ${name}`, chooseAll: 'Choose all', chosen: (count: number) => `${count} chosen`, unchoose: 'Choose none', actions: (name: string) => `Actions of ${name}`,
    never: 'Never', soon: 'Soon', idleTitle: 'Until it is stopped, if nobody uses it',
  },
  create: {
    open: 'New sandbox', title: 'New sandbox', button: 'Create', name: 'Name', nameHint: 'optional', templateLabel: 'Template',
    template: (name: string, status?: string) => (status === 'available' ? `${name} (fetched first)` : status === 'building' ? `${name} (building)` : name),
    anImage: 'An image…', aSnapshot: 'A snapshot…', image: 'Image', snapshot: 'Snapshot', cpu: 'CPU cores', memory: 'Memory', disk: 'Disk',
    network: 'Network', networkDefault: 'Default', ports: 'Ports with previews', idle: 'Stops when idle for',
    idleChoices: [{ value: '', label: 'Default' }, { value: '300', label: '5 minutes' }, { value: '1800', label: '30 minutes' }, { value: '14400', label: '4 hours' }, { value: '86400', label: 'A day' }, { value: 'never', label: 'Never' }],
    allow: 'Allowed names and addresses', allowHint: 'One a line: names, *.names, addresses or networks, with or without :port.',
    more: 'Environment, labels, start command', env: 'Environment', labels: 'Labels', pairsHint: 'NAME=value, one a line.', start: 'Start command', startHint: 'Runs at each start, and again when it fails.',
  },

  host: {
    about: 'The machine that runs the sandboxes.', state: 'State', ready: 'Sandboxes can be created', isReady: 'Yes', notReady: 'No', version: 'Version', driver: 'Driver', sandboxes: 'Your sandboxes',
    memoryPromised: 'Memory limits of yours that run', cpuPromised: 'CPU limits of yours that run', disk: 'Disk limits of your organization', images: 'Images', workspaces: 'Workspaces',
    capabilities: 'What the driver can do',
    capability: map({ freeze: 'Pause', disk_limit: 'Disk limits', live_resize: 'Change of limits while running', egress_policy: 'Network policy', isolated_exec: 'Isolated commands', adopt: 'Survives restarts', layers: 'Images', snapshots: 'Snapshots', members: 'Members', project_files: 'Files of projects' }),
    memory: 'Memory of the host', diskOfData: 'Disk of the data', ofDaemon: 'Memory of the daemon', running: 'Sandboxes that run', processes: 'Kept processes',
    backups: 'Backups of the state', backUp: 'Back up now', backupBegun: 'A backup is being written', backupName: 'File', written: 'Written',
    orphans: 'Orphans', noOrphans: 'No orphans', noOrphansAbout: 'All files on disk belong to a sandbox that the database knows.', location: 'Location',
  },

  doctor: {
    title: 'Doctor', isWell: 'Nothing is missing', problems: (count: number) => plural(count, 'problem'), again: 'Look again', well: (count: number) => `${plural(count, 'check')} found nothing wrong`, mend: 'Mend it',
    statuses: { ok: 'All is well', warn: 'Works, with less', fail: 'Does not work' },
  },

  tabs: { overview: 'Overview', terminal: 'Terminal', run: 'Run', processes: 'Processes', files: 'Files', ports: 'Ports', network: 'Network', members: 'Members', snapshots: 'Snapshots', playground: 'Playground', events: 'Events', settings: 'Settings' },
  sandbox: {
    tabs: 'Views of the sandbox', more: 'More', copyId: 'Copy the id', stopsIn: 'stops in', startFailed: 'The last start failed:', ready: 'Ready', notReady: 'Not ready yet', lastEnd: 'Last end:', awake: 'awake because', facts: 'Facts', walls: 'Walls', startCommands: 'Start commands', restarts: 'Restarts',
    gone: 'There is no such sandbox', goneAbout: 'It was deleted, or belongs to somebody else.', all: 'All sandboxes',
    upgradable: 'Its template has a newer version, which it gets when it is stopped and started.',
  },
  facts: {
    owner: 'Owner', project: 'Project', template: 'Template', driver: 'Driver', limits: 'Limits', limitsOf: (cpu: number, memory: string, disk: string, pids: number) => `${plural(cpu, 'core')}, ${memory} memory, ${disk} disk, ${pids} processes`,
    network: 'Network', security: 'Security profile', previews: 'Previews', privacy: 'Previews are', private: 'private', public: 'public', idle: 'Stops when idle for', lifetime: 'Is deleted after', awake: 'Awake because',
    created: 'Created', started: 'Started', active: 'Last used', expires: 'Expires', lastEnd: 'Last end',
  },
  stats: { window: 'Time', windows: { now: '10 minutes', hour: 'Hour', day: 'Day' }, cpu: 'CPU', cpuPercent: 'CPU', memory: 'Memory', disk: 'Disk', pids: 'Processes', network: 'Network', networkRate: 'Network', received: 'Received', sent: 'Sent', chart: (title: string, now: string, limit: string) => `${title}, now ${now}${limit && `, limit ${limit}`}` },
  needs: {
    title: (status: string) => `This sandbox is ${status}`, about: (what: string) => `Looking around does not wake it. Start it to ${what}.`,
    terminal: 'open a terminal', run: 'run commands', files: 'see its files', playground: 'run code',
  },
  terminal: {
    list: 'Terminals', open: 'New terminal', none: 'No terminal is open', noneAbout: 'Terminals go on when you leave this page, and are here again when you come back.',
    number: (number: number) => `Terminal ${number}`, close: (number: number) => `End terminal ${number}`, states: { connecting: 'Connecting', live: '', lost: 'Reconnecting', over: 'Ended' },
    ended: (code: number | null) => (code === null ? '[ended]' : `[ended with ${code}]`),
  },
  run: {
    command: 'Command', hint: 'A line for the shell, such as uname -a', user: 'Runs as', button: 'Run', running: 'Running', exit: (code: number) => `exit ${code}`, cancelled: 'Cancelled.', drop: 'Drop this run',
    none: 'Run a command', noneAbout: 'What it writes comes live, with its exit code at the end.', noneWithHistory: 'What it writes comes live. The arrow keys bring back what you ran before.',
  },
  output: { label: 'Output', none: 'Nothing was written.', cut: '\n[output that is not kept any more]\n', search: 'Search in the output', matches: (count: number) => plural(count, 'match', 'matches'), follow: 'Follow', searchAll: 'Search all output', noMatch: 'No line of any process has that text.', more: 'There is more than was looked at: search for something rarer.' },
  processes: {
    show: 'Which', running: 'Running', ended: 'Ended', runs: 'running', none: 'No processes', noneAbout: 'Background commands, terminals and streamed commands are listed here, with their output.', noMatch: 'None is like that.', nameless: '(its own command)',
    signal: 'Signal', signalled: (name: string) => `${name} was sent`,
  },
  files: {
    root: 'Directory', upload: 'Upload files', view: 'File', none: 'No file is open', noneAbout: 'Choose one on the left. Files that you drop there are uploaded.', empty: 'Empty', dropHint: (folder: string) => `Drop files here to upload them to ${folder}`,
    make: { file: { title: 'New file' }, dir: { title: 'New directory' } }, makeIn: (folder: string) => `In ${folder}`, makeButton: 'Make',
    more: (count: number) => `Show ${count} more`, notText: 'Its name is not valid text', unreadable: '(name is not text)', actions: (name: string) => `Actions of ${name}`, download: 'Download', downloadTar: 'Download as tar',
    rename: 'Rename or move', renameButton: 'Rename', newPath: 'New path', removeTitle: (name: string) => `Delete ${name}?`, removeDir: 'The directory and all that is in it are removed.', removeFile: 'The file is removed.', removed: (name: string) => `${name} was deleted`,
    saved: (name: string) => `${name} is saved`, dirty: 'Not saved', leave: { title: 'Leave without saving?', about: 'What you have changed in the file that is open is lost.', confirm: 'Leave' }, conflict: 'The file has changed meanwhile', conflictAbout: 'Somebody or something has written to it since you opened it. Overwriting loses those changes.', overwrite: 'Overwrite',
    binary: 'Not a text', binaryAbout: (size: string) => `It is no text, or too large to be edited here (${size}). It can be downloaded.`, editor: (name: string) => `Editor of ${name}`,
  },
  ports: {
    port: 'Port', listens: 'Listens', access: 'Who may see it', address: 'Preview', something: '(unknown)', nothing: 'nothing listens', unreachable: 'only inside', public: 'Public', noPreview: 'none yet', share: 'Share', show: 'Show here', preview: (port: number) => `Preview of port ${port}`, framedBy: (origin: string) => `in a frame of ${origin}`, reload: 'Reload the preview', openTab: 'Open in a tab', widths: { desktop: 'As wide as here', tablet: 'As wide as a tablet', phone: 'As wide as a phone' },
    none: 'Nothing listens', noneStopped: 'Nothing listens while it is stopped', noneAbout: 'Start a server in the sandbox: its port appears here within seconds, with an address of its own.',
    shareTitle: (port: number) => `Share port ${port}`, shareAbout: 'Whoever has the link sees the preview until it expires or is revoked.', life: 'Good for', make: 'Make a link', link: 'Link', once: 'It is shown this once.', noLinks: 'No links are out.', revoke: 'Revoke', revoked: 'The link is revoked',
    lives: [{ value: '3600', label: 'An hour' }, { value: '86400', label: 'A day' }, { value: '604800', label: 'A week' }, { value: '2592000', label: '30 days' }],
  },
  network: {
    traffic: 'Traffic', connections: 'Connections', open: 'Open now', refused: 'Refused', policy: 'Policy', mode: 'May reach', saved: 'The policy holds from now on', reached: 'Reached', reachedNone: 'It has reached nothing yet.', learnNone: 'Allow only these', learn: (count: number) => `Allow only ${plural(count, 'rule')}`, learned: (count: number) => `Only ${plural(count, 'rule')} and what was allowed before are open now`, learnAbout: 'All of the internet is open, and what is reached is noted as rules. Run what the sandbox is for, then close the rest.', learnOpen: 'Learn', learning: 'All is open now, and what is reached is noted', learnOpenAbout: 'To learn an allowlist, open the internet for a while and run what the sandbox is for.',
    denials: 'Refused, or not found', noDenials: 'Nothing was refused', noDenialsAbout: 'What the sandbox tried to reach and may not appears here, with the rule that would allow it.', target: 'Target', why: 'Why', times: 'Times', last: 'Last', allow: (rule: string) => `Allow ${rule}`, allowed: (rule: string) => `${rule} is allowed now`, isAllowed: 'Allowed now',
    reasons: map({ not_allowed: 'Not on the list', private_address: 'A private address', other_name: 'Asked for another name than it looked up', forgotten_name: 'The name was looked up too long ago', too_many_connections: 'Too many connections', no_such_name: 'The name servers know no such name', no_answer: 'No name server answers' }),
  },
  snapshots: {
    about: 'Copies of all files of a sandbox. They outlive it.', make: 'New snapshot', makeButton: 'Take a snapshot', makeAbout: 'A copy of all files as they are now. Processes go on.', made: 'The snapshot is taken', nameOf: (date: Date) => date.toISOString().slice(0, 16).replace('T', ' '),
    fork: 'Fork', forked: 'A new sandbox has these files', restore: 'Go back', restoreTitle: (name: string) => `Go back to ${name}?`, restoreAbout: 'All that was written since is lost, and all processes end.', restored: 'The files are back',
    undo: 'Undo', undoAbout: 'The files become as they were before the last command with a checkpoint. What was written since is lost.', undone: 'Undone', none: 'No snapshots', noneAbout: 'A snapshot keeps all files as they are. You can go back to it, or start others from it.', noneAnywhere: 'Take one on the page of a sandbox.',
    of: 'Sandbox', checkpoint: 'Checkpoint', changes: 'Changes', start: 'Start from it', remove: 'Delete the snapshot', removeTitle: (name: string) => `Delete snapshot ${name}?`, removeAbout: 'Its files are removed. Sandboxes that were started from it stay.', removed: 'The snapshot is deleted',
    changed: 'Changed files', changedSince: (name: string) => `Changed since ${name}`, sinceCreated: 'Since it was created', unchanged: 'Nothing has changed.', searchChanges: 'Search in paths', moreChanges: 'Only the first thousand are shown.', kinds: { added: 'added', modified: 'modified', deleted: 'deleted' },
  },
  playground: {
    language: 'Language', languages: { python: 'Python', javascript: 'JavaScript', typescript: 'TypeScript', java: 'Java', shell: 'Shell' }, keys: 'Ctrl Enter runs it', noneAbout: 'The value of the last expression is the result. Figures, tables and HTML are shown.', inContext: 'Cells share what was defined before.', cell: (number: number) => `Cell ${number}`, addCell: 'Add a cell', dropCell: (number: number) => `Remove cell ${number}`, artifacts: 'Artifacts', figure: 'Figure', html: 'HTML result',
    statuses: map({ queued: 'queued', running: 'running', succeeded: 'succeeded', failed: 'failed', timeout: 'timed out', cancelled: 'cancelled', lost: 'lost' }),
    samples: { python: 'squares = [n * n for n in range(10)]\nprint(squares)\nsum(squares)\n', javascript: 'const squares = [...Array(10).keys()].map((n) => n * n);\nconsole.log(squares);\nsquares.reduce((a, b) => a + b);\n', shell: 'uname -a\ndf -h /workspace\n' },
  },
  contexts: { label: 'Where it runs', fresh: 'Fresh each time', kept: (number: number) => `Context ${number}`, make: 'New context…', actions: 'Actions of the context', interrupt: 'Interrupt', restart: 'Restart', end: 'End', done: { interrupt: 'What ran is interrupted', restart: 'The context begins anew', end: 'The context has ended' } },
  events: { live: 'Since this page is open', none: 'Nothing has happened', noneAbout: 'Starts, stops, refusals and ports appear here as they happen.', audit: 'Audit log', noAudit: 'The audit log has nothing of it.' },
  settings: { saved: 'The settings are changed', nameHint: 'Stands wherever its id may.', idle: 'Stops when idle for (s)', lifetime: 'Is deleted after (s)', emptyNever: 'Empty: never.', private: 'Previews need a link or token' },
  packages: { title: 'Packages', names: 'Names', install: 'Install', installing: 'Installing…', none: 'None beside those of its template.' },

  members: {
    role: 'Role', health: 'Health', show: 'Show', logs: 'Log', none: 'No members', noneAbout: 'A sandbox can be created with a database, a cache or other services beside it, which share its network and workspace.', noLogs: 'Nothing has run in it yet.', notRunning: 'It does not run',
    roles: { primary: 'Primary', frontend: 'Frontend', backend: 'Backend', database: 'Database', cache: 'Cache' },
    statuses: { creating: 'creating', waiting: 'waits for others', running: 'running', restarting: 'restarting', exited: 'ended', paused: 'paused', stopped: 'stopped', error: 'failed' }, healths: { none: 'no check', starting: 'starting', healthy: 'healthy', unhealthy: 'unhealthy' },
  },
  pools: { title: 'Warm pools', template: 'Template', owner: 'Owner', everybody: 'everybody', ready: 'Ready', hits: 'Hits', misses: 'Misses', warming: (count: number) => `${count} being made`, none: 'No pools', noneAbout: 'A template with a pool has sandboxes waiting, so that a create is given one at once.', held: (why: string) => `None is made at present: ${why}`, draining: (count: number) => `${plural(count, 'sandbox', 'sandboxes')} being removed` },

  templates: {
    about: 'What sandboxes start from.', make: 'New template', build: 'Build', rebuild: 'Build again', building: 'The build has begun', search: 'Name or image', none: 'No template has such a name', start: 'Start a sandbox', used: 'used', source: 'Made of', from: 'Begins with', run: 'Commands, one a line', log: 'Build log', version: 'Version', digest: 'Digest', user: 'User', workdir: 'Directory', languages: 'Languages', lastUsed: 'Last used',
    gone: (name: string) => `there is no template ${name}`, removeTitle: (name: string) => `Delete template ${name}?`, removeAbout: 'Sandboxes can no longer be started from it.',
    statuses: { available: 'Not fetched', building: 'Building', ready: 'Ready', error: 'Failed' },
    sources: map({ host: 'The host’s own files', image: 'Image', archive: 'Archive', archive_path: 'Archive on the server', snapshot: 'Snapshot', recipe: 'Packages', dockerfile: 'Dockerfile', bootstrap: 'Debian packages', catalogue: 'Catalogue' }),
  },
  projects: {
    about: 'Files that sandboxes share, read-only, in /workspace/project_files.', make: 'New project', makeAbout: 'Its sandboxes see its files, and take these settings.', search: 'Name', none: 'No projects yet', noneAbout: 'A project keeps files once for all its sandboxes, and can be launched: from files to a running preview.', noMatch: 'None has such a name.',
    files: (count: number) => plural(count, 'file'), changed: 'changed', template: 'Template of its sandboxes', removeTitle: (name: string) => `Delete project ${name}?`, removeAbout: 'It goes with all its files. A project that still has sandboxes is not deleted.', removed: (name: string) => `${name} was deleted`,
    unpack: 'Upload an archive', uploaded: (count: number) => `${plural(count, 'file')} uploaded`, uploadedAt: 'Uploaded', empty: 'No files yet', emptyAbout: 'Drop files here, or choose some. A tar or zip brings many at once.', dropHint: 'Drop files here to upload them. A file with the same path is replaced.', searchFiles: 'Search in paths', moreFiles: (count: number) => `Only the first ${count} are shown: search for the others.`, removeFile: 'The file is removed, for its sandboxes as well.',
    report: 'What it is made of', check: 'Check the files', valid: 'It can be launched', validAbout: 'No rule found anything that would keep it from running.', invalid: 'It would not run', emptyReport: 'Upload files first.', noSandboxes: 'No sandboxes', noSandboxesAbout: 'A launch makes one, and so does a create that names this project.', launches: 'Launches of it',
  },
  launches: {
    about: 'From files to a running preview, stage by stage.', launch: 'Launch', title: (id: string) => `Launch ${id.slice(-6)}`, start: 'Launch', startAbout: 'What the files are is found out, what they need is installed, and the app is started.', button: 'Start the launch', again: 'Launch again', from: 'Try again from here', open: 'Open the preview', none: 'No launches', noneAbout: 'Launch a project, and follow it from its files to its preview.', noProject: 'There is no project yet: make one, and upload the files of an app.',
    templateHint: 'For a sandbox that is made for it.', better: 'Commands and times', backendCommand: 'Starts the backend', frontendCommand: 'Starts the frontend', commandHint: 'Empty: as detected.', installTime: 'Installing may take (s)',
    begun: 'Begun', stage: 'Stage', stages: 'Stages', ofSandbox: 'Files of a sandbox', itsProject: 'Open its project', detection: 'What was found', findings: 'Findings', showLog: (count: number) => `Show ${plural(count, 'line')}`, hideLog: 'Hide the log',
    journeys: 'Journeys', window: 'Time', windows: [{ value: '1', label: 'Day' }, { value: '7', label: 'Week' }, { value: '30', label: 'Month' }], noJourneys: 'Nothing was launched in this time.', rate: 'Succeeded of all', completed: 'Completed', half: 'Half within', most: '95 % within', causes: 'Why they failed:',
    statuses: { running: 'Running', succeeded: 'Succeeded', failed: 'Failed', cancelled: 'Cancelled' }, statusAbout: { running: 'The stages are under way.', succeeded: 'The app answers through its preview.', failed: 'A stage failed: the cause and what to try are below.', cancelled: 'It was ended before it was done.' },
    states: { pending: 'waits', running: 'runs', complete: 'done', failed: 'failed', skipped: 'skipped' }, severities: { error: 'Error', warning: 'Warning', info: 'Note' }, fix: (fix: string) => `In the copy that is started: ${fix}`, diff: 'Show the difference', roles: { backend: 'Backend', frontend: 'Frontend' }, port: (port: number) => `port ${port}`, needs: (name: string) => `needs ${name}, which it is given as a member`, unknown: 'Nothing that is known.', override: (what: string, said: string, found: string, source: string) => `${what}: ${said}, found was ${found === 'null' ? 'nothing' : found} (${source})`,
    names: map({ DetectEntryPoint: 'Detect the entry point', MaterializeFiles: 'Copy the files', GenerateEnvVars: 'Write the environment', InstallDependencies: 'Install dependencies', PostInstallChecks: 'Check the installation', SyntaxCheck: 'Check the syntax', LaunchBackend: 'Start the backend', LaunchFrontend: 'Start the frontend' }),
    abouts: map({ DetectEntryPoint: 'Which runtimes, frameworks and entry files there are.', MaterializeFiles: 'Into /workspace/app of the sandbox, with fixes.', GenerateEnvVars: 'PORT, HOST and the like into .env; what is there is kept.', InstallDependencies: 'With the package manager that the files ask for.', PostInstallChecks: 'That what was installed is there.', SyntaxCheck: 'Of the entry files.', LaunchBackend: 'Until it answers.', LaunchFrontend: 'Until it answers.' }),
  },
  functions: {
    about: 'Handlers under a name. Each call runs in a fresh sandbox.', make: 'New function', deploy: 'Deploy', none: 'No functions yet', noneAbout: 'Deploy a handler, and call it over HTTP: it gets an event, and answers what it returns.', handler: 'Handler', timeout: 'Ends after', timeoutField: 'Ends after (s)', deployed: 'Deployed', concurrency: 'Calls at once', imports: 'Loaded before', calls: 'Calls',
    change: (name: string) => `New version of ${name}`, changeAbout: 'Versions that are there stay as they are.', newVersion: 'New version', latest: 'Last version', number: (version: number) => `Version ${version}`, versionOf: (version: number, language: string) => `Version ${version}, ${language}`, code: 'Code',
    removeTitle: (name: string) => `Delete function ${name}?`, removeAbout: 'It goes in all its versions. What its calls left stays in the list of executions.', removed: (name: string) => `${name} was deleted`,
    invoke: 'Call it', invokeButton: 'Call', event: 'Event', eventHint: 'Any JSON; the handler gets it.', notJson: 'This is not JSON.', answer: 'Answer', history: 'Calls', noCalls: 'Nobody has called it', noCallsAbout: 'Calls are kept here, with what they said and answered.', called: 'Called', counted: (count: number, half: string, most: string) => `${plural(count, 'call')}, half within ${half}, 95\u00a0% within ${most}`, failures: (count: number) => `${count} failed`,
    samples: { python: 'def handler(event, context):\n    return {"hello": event.get("name", "you")}\n', javascript: 'exports.handler = async (event) => ({ hello: event.name ?? "you" });\n', typescript: 'export const handler = async (event: { name?: string }) => ({ hello: event.name ?? "you" });\n', java: '', shell: 'cat\n' },
  },
  jobs: { about: 'Builds, downloads and backups, which go on when you leave.', none: 'No jobs', noneAbout: 'Builds of templates, downloads of images and backups appear here.', target: 'About', progress: 'Progress', took: 'Took', kinds: map({ launch: 'Launch', template: 'Template', dependencies: 'Packages', backup: 'Backup' }), states: { queued: 'Queued', running: 'Running', succeeded: 'Succeeded', failed: 'Failed', cancelled: 'Cancelled', lost: 'Lost' } },
  tokens: {
    about: 'Keys for programs and people. Each acts for its owner.', make: 'New token', makeButton: 'Make the token', none: 'No tokens', scopes: 'May', lastUsed: 'Last used', revoke: 'Revoke', revokeOf: (name: string) => `Revoke ${name}`, revokeTitle: (name: string) => `Revoke ${name}?`, revokeAbout: 'It is refused from now on, and what is served to it is cut.', revoked: 'The token is revoked',
    made: 'The token', once: 'Copy it now: it is shown this once.', haveIt: 'I have it', nameHint: 'ci-deploy', nameRule: 'What it is for, in letters, digits and . _ -', organization: 'Organization', user: 'User', own: 'your own',
    lives: [{ value: '', label: 'Never' }, { value: '86400', label: 'In a day' }, { value: '2592000', label: 'In 30 days' }, { value: '31536000', label: 'In a year' }],
    scopeNames: { read: 'read: look at everything', run: 'run: commands and code', files: 'files: read and write files', manage: 'manage: create, change and remove', admin: 'admin: all of it, for everybody' },
  },
  logins: { title: 'Browsers that are signed in', browser: 'Browser', from: 'From', current: 'This one', end: 'Sign it out', ended: 'It is signed out' },
  secrets: { about: 'Keys that the server adds to requests of sandboxes, which never see them.', make: 'New secret', makeAbout: 'Sandboxes that may use it reach the server under a name of its own, and the key is added on the way.', none: 'No secrets', noneAbout: 'Give sandboxes the use of a key without giving them the key.', url: 'Server', header: 'Header', value: 'Value', changed: 'Changed', inside: (name: string) => `Inside: http://${name}.internal/`, removeTitle: (name: string) => `Delete ${name}?`, removeAbout: 'No request gets it from then on.' },
  quotas: {
    about: 'What you may have, and have.', aboutAll: 'What you may have and have, and all other owners.', owners: 'Owners', searchOwners: 'Organization or user', noOwner: 'Nobody has such a name.', owner: 'Owner', changeOf: (name: string) => `Change the quotas of ${name}`, organization: (name: string) => `Organization ${name}`, isSet: 'Set', change: 'Change', noLimit: 'no limit', changeTitle: (name: string) => `Quotas of ${name}`, changeAbout: 'An empty field means the default. What there is already stays.', defaults: 'Use the defaults',
    names: { sandboxes: 'Sandboxes', running: 'Running', workspaces: 'Workspaces', cpu: 'CPU cores', memory: 'Memory', disk: 'Disk', images: 'Images', projects: 'Projects', creates_per_minute: 'Creates in a minute' },
  },
  audit: { about: 'What was done, and by whom. Each entry is chained to the one before.', verify: 'Verify the chain', whole: (count: number) => `The chain is whole: ${plural(count, 'entry', 'entries')}. Its head is`, broken: (kind: string, at: number) => `The chain is broken at entry ${at} (${kind}). Its head is`, action: 'Action, such as sandbox.create', user: 'User', none: 'No entries', noneAbout: 'Nothing like that was done.', when: 'When', who: 'Who', what: 'What', object: 'Object', answer: 'Answer', from: 'From' },
  connect: {
    about: 'Use this server from a shell or a program.', token: 'Each of these needs a token in the place of <token>:', way: 'Way', cliSetUp: 'Say where the server is.', cliRun: 'Run a command in a sandbox that is gone afterwards.', cliShell: 'Keep one, and open a shell in it.',
    create: 'Create a sandbox.', exec: 'Run a command in it.', put: 'Write a file.', python: 'With nothing but Python’s own library.', javascript: 'In Node, with its own fetch.', mcpHttp: 'In the configuration of a program that gives tools to a model.', mcpTools: 'See which tools there are.', e2bKey: 'Make a key of the form that its clients take.', e2bSetUp: 'Say where this server is.', e2bRun: 'In Node, with the package e2b.',
  },
};
