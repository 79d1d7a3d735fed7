/* SPDX-License-Identifier: Apache-2.0 */
#include "model/process/danger.h"

#include "base/buf.h"
#include "base/format.h"
#include "model/process/shell_scan.h"

#include <errno.h>
#include <string.h>

#define NESTING_MAX 4  /* sh -c in sh -c */
#define LEVELS_MAX  66 /* of shell_scan.c, and the text itself */
#define PROGRAM_MAX 64
#define CALL_MAX    32 /* strings of a call in code */

#define SHELLS	    "sh bash dash zsh ash ksh fish"
#define LANGUAGES   "python python2 python3 python3.* node nodejs deno bun perl ruby php lua"
#define DOWNLOADERS "curl wget fetch aria2c lwp-request"
#define TOP                                                                                        \
	"/ ~ $HOME ${HOME} /bin /boot /dev /etc /home /lib /lib64 /opt /proc /root /sbin /srv "    \
	"/sys /usr /var /workspace"

/*
 * The rules. Lists have spaces between; an entry may have * for any characters. All that a rule gives must be there; of a
 * list, one entry. The place of a rule is its bit in the database: new ones come last.
 */
static const struct rule {
	const char *name, *reason;
	const char *programs; /* without their directory; NULL: any */
	const char *except;   /* programs that are not meant */
	char option;	      /* a letter, or the first one of a long option */
	const char *words;    /* arguments and targets of redirections */
	const char *also;     /* likewise, of another word */
	const char *unlike;   /* words that are not meant */
	const char *from;     /* programs whose output it runs, from a pipe or a substitution */
	const char *texts;    /* or anywhere in the text, of which spaces do not count */
} rules[] = {
	{"delete_root", "deletes the system, the home directory or the whole workspace",
		.programs = "rm", .option = 'r', .words = TOP},
	{"fork_bomb", "starts itself again and again until no process is left",
		.texts = "whileTrue:os.fork() while1:os.fork() forkwhilefork while(1)fork() "
			 "while(true)fork() for(;;)fork() for(;;){fork()} while(1){fork()}"},
	{"download_and_run", "runs code from the network that nobody has looked at",
		.programs = SHELLS " " LANGUAGES " eval source .", .from = DOWNLOADERS},
	{"decode_and_run", "runs code that is written so that nobody can read it",
		.programs = SHELLS " " LANGUAGES " eval source .",
		.from = "base64 base32 xxd uudecode openssl"},
	{"read_credentials", "touches files that hold passwords, keys or tokens",
		.except = "echo printf git ls stat test [ [[ mkdir touch chown chmod ssh "
			  "ssh-keygen ssh-add ssh-keyscan rm find man which",
		.words = "/etc/shadow /etc/gshadow */.ssh/id_* .ssh/id_* */.aws/credentials "
			 "*/.netrc */.git-credentials */.docker/config.json */.kube/config "
			 "*/.config/gcloud/* */.gnupg/* */.pgpass /proc/*/environ "
			 "/run/secrets/* /var/run/secrets/*",
		.unlike = "*.pub"},
	{"miner", "mines a cryptocurrency",
		.programs = "xmrig* minerd cpuminer* ethminer* cgminer bfgminer nbminer* lolminer* "
			    "phoenixminer* xmr-stak* nanominer* teamredminer*"},
	{"mining_pool", "talks to a pool that mines a cryptocurrency",
		.texts = "stratum+tcp:// stratum+ssl:// stratum+tls://"},
	{"overwrite_device", "writes over a disk", .except = "echo printf ls cat stat lsblk",
		.words = "of=/dev/sd* of=/dev/hd* of=/dev/vd* of=/dev/xvd* of=/dev/nvme* "
			 "of=/dev/loop* of=/dev/mmcblk* of=/dev/mapper/*"},
	{"format_device", "makes a new file system where there may be one",
		.programs = "mkfs mkfs.* mke2fs wipefs mkswap shred blkdiscard", .words = "/dev/*",
		.unlike = "/dev/null"},
	{"open_permissions", "lets everybody change everything", .programs = "chmod", .option = 'R',
		.words = TOP, .also = "777 0777 a+rwx ugo+rwx a+w ugo+w +rwx"},
	{"reverse_shell", "gives a shell to somebody on the network", .programs = SHELLS,
		.option = 'i', .words = "/dev/tcp/* /dev/udp/*"},
	{"network_shell", "lets a program be used by somebody on the network",
		.programs = "nc ncat netcat nc.*", .option = 'e',
		.words = "/bin/* sh bash cmd /usr/bin/*"},
	{"cloud_metadata", "asks the cloud's metadata service, which hands out credentials",
		.texts = "169.254.169.254 metadata.google.internal"},
	{"kernel_access", "changes the kernel or reads its memory",
		.programs = "insmod modprobe rmmod kexec"},
	{"kernel_files", "changes the kernel, reads its memory, or has it run a program",
		.except = "echo printf ls stat",
		.words = "/proc/sysrq-trigger /proc/sys/kernel/core_pattern */release_agent "
			 "/dev/mem /dev/kmem /dev/port /proc/kcore"},
	{"container_socket", "talks to a container runtime, which has the host's rights",
		.texts = "/docker.sock /containerd.sock /crio.sock /podman.sock"},
	{"shutdown", "turns the machine off", .programs = "shutdown reboot halt poweroff"},
	{"erase_traces", "removes the record of what was typed",
		.programs = "rm shred truncate unlink ln",
		.words = "*/.bash_history */.zsh_history .bash_history .zsh_history "
			 "/var/log/auth.log /var/log/wtmp /var/log/audit/*"},
};

#define RULE_COUNT (sizeof(rules) / sizeof(rules[0]))
_Static_assert(RULE_COUNT <= 32, "a set of rules has 32 bits");

enum { DELETE_ROOT, FORK_BOMB, DOWNLOAD_AND_RUN, DECODE_AND_RUN };

/* --- lists --- */

/* A pattern of a list, with * for any characters. Only the last * is ever tried again: that is enough, and it bounds the
 * work by the product of both lengths. */
static bool matches(const char *pattern, size_t len, const char *word)
{
	const char *end = pattern + len, *star = NULL, *again = NULL;

	while (*word) {
		if (pattern < end && *pattern == '*') {
			star = pattern++;
			again = word;
		} else if (pattern < end && *pattern == *word) {
			pattern++;
			word++;
		} else if (star) {
			pattern = star + 1;
			word = ++again;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

static bool is_in(const char *list, const char *word)
{
	while (list && *list) {
		size_t len = strcspn(list, " ");

		if (matches(list, len, word))
			return true;
		list += len + (list[len] == ' ');
	}
	return false;
}

/* --- one command --- */

struct command {
	char program[PROGRAM_MAX];
	bool has_program;
	bool is_behind_wrapper, skips_value;
	bool names_function;	  /* "function" comes before it */
	bool takes_script;	  /* the next word is code: sh -c */
	bool is_pipe_end;	  /* it reads what another one writes */
	unsigned arguments;	  /* that are no options */
	uint64_t options;	  /* letters, and first letters of long ones */
	danger_set words, also;	  /* rules whose words were seen */
	danger_set from;	  /* rules whose `from` writes what it runs */
	danger_set piped;	  /* the same of what it reads */
	char before[PROGRAM_MAX]; /* the program before it in the pipe */
};

struct judge {
	danger_set found;
	unsigned nesting;
	struct command levels[LEVELS_MAX];
	bool substituted[LEVELS_MAX]; /* the level is a word of the command around it */
	unsigned depth;
	char function[PROGRAM_MAX]; /* whose body is read, or "" */
	unsigned braces;
};

static danger_set judge_line(const char *text, size_t len, unsigned nesting);
static danger_set judge_code(const char *text, size_t len, unsigned nesting);

static int letter_bit(char c)
{
	if (c >= 'a' && c <= 'z')
		return c - 'a';
	return c >= 'A' && c <= 'Z' ? 26 + c - 'A' : -1;
}

static bool has_option(const struct command *command, char letter)
{
	int bit = letter_bit(letter);

	return bit >= 0 && (command->options >> bit & 1);
}

static void add_option(struct command *command, char letter)
{
	int bit = letter_bit(letter);

	if (bit >= 0)
		command->options |= UINT64_C(1) << bit;
}

static void take_options(struct command *command, const char *word)
{
	if (word[1] == '-') {
		add_option(command, word[2]);
		return;
	}
	for (word++; *word; word++)
		add_option(command, *word);
}

static bool is_assignment(const char *word)
{
	size_t len =
		strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

	return len > 0 && word[len] == '=' && (word[0] < '0' || word[0] > '9');
}

/* A program that runs the one behind its options, or a word of the shell before a command. */
static bool is_wrapper(const char *word)
{
	return is_in("sudo doas env nohup time exec command builtin nice ionice stdbuf setsid "
		     "timeout xargs busybox unbuffer then do else elif if while until !",
		word);
}

/* -r and -R are the same to those who delete and copy. */
static bool has_wanted_option(const struct command *command, char letter)
{
	return !letter || has_option(command, letter) ||
	       (letter == 'r' && has_option(command, 'R')) ||
	       (letter == 'R' && has_option(command, 'r'));
}

/* Whether it runs what it reads: an interpreter without a script of its own. */
static bool runs_input(const struct command *command)
{
	if (has_option(command, 'c') || has_option(command, 'e') || has_option(command, 'm'))
		return false;
	if (is_in(SHELLS, command->program))
		return command->arguments == 0 || has_option(command, 's');
	return is_in(LANGUAGES, command->program) && command->arguments == 0;
}

static bool meets(const struct command *command, size_t i)
{
	const struct rule *rule = &rules[i];
	danger_set bit = (danger_set)1 << i;
	danger_set from = command->from | (runs_input(command) ? command->piped : 0);

	if (!rule->programs && !rule->words)
		return false; /* of texts alone, or judged elsewhere */
	return (!rule->programs || is_in(rule->programs, command->program)) &&
	       !is_in(rule->except, command->program) && has_wanted_option(command, rule->option) &&
	       (!rule->words || (command->words & bit)) && (!rule->also || (command->also & bit)) &&
	       (!rule->from || (from & bit));
}

static danger_set judge_command(const struct command *command)
{
	danger_set found = 0;

	if (!command->has_program && !command->words)
		return 0;
	for (size_t i = 0; i < RULE_COUNT; i++) {
		if (meets(command, i))
			found |= (danger_set)1 << i;
	}
	return found;
}

/* Rules whose `from` a program is. */
static danger_set feeds(const char *program)
{
	danger_set set = 0;

	for (size_t i = 0; program[0] && i < RULE_COUNT; i++) {
		if (rules[i].from && is_in(rules[i].from, program))
			set |= (danger_set)1 << i;
	}
	return set;
}

/* A directory without what makes no difference: //usr/./ is /usr, and so are all files in it. */
static void normalize(const char *word, char *path, size_t size)
{
	size_t len = 0;

	for (; *word && len + 1 < size; word++) {
		if (len > 0 && path[len - 1] == '/') {
			if (*word == '/')
				continue;
			if (word[0] == '.' && (word[1] == '/' || !word[1]))
				continue;
		}
		path[len++] = *word;
	}
	if (len > 1 && path[len - 1] == '*' && path[len - 2] == '/')
		len--;
	while (len > 1 && path[len - 1] == '/')
		len--;
	path[len] = '\0';
}

static void take_rule_words(struct command *command, const char *word)
{
	char path[256];

	normalize(word, path, sizeof(path));
	for (size_t i = 0; i < RULE_COUNT; i++) {
		danger_set bit = (danger_set)1 << i;

		if (is_in(rules[i].unlike, word))
			continue;
		if (is_in(rules[i].words, word) || is_in(rules[i].words, path))
			command->words |= bit;
		if (is_in(rules[i].also, word))
			command->also |= bit;
	}
}

/* --- a command, word by word --- */

static struct command *current(struct judge *judge)
{
	return &judge->levels[judge->depth];
}

static void take_program(struct judge *judge, struct command *command, const char *word)
{
	const char *slash = strrchr(word, '/');
	const char *name = slash && slash[1] ? slash + 1 : word;

	if (command->names_function && !judge->function[0])
		snprintf(judge->function, sizeof(judge->function), "%.*s", PROGRAM_MAX - 1, word);
	if (command->names_function) { /* its body follows */
		*command = (struct command){0};
		return;
	}
	snprintf(command->program, sizeof(command->program), "%.*s", PROGRAM_MAX - 1, name);
	command->has_program = true;
}

/* Before the program: what only says how it is run. */
static bool is_before_program(struct command *command, const char *word)
{
	bool skips = command->skips_value;

	command->skips_value = false;
	if (strcmp(word, "function") == 0) {
		command->names_function = true;
		return true;
	}
	if (is_wrapper(word)) {
		command->is_behind_wrapper = true;
		return true;
	}
	if (is_assignment(word) || skips)
		return true;
	if (!command->is_behind_wrapper)
		return false;
	if (word[0] == '-') {
		command->skips_value = strcmp(word, "-u") == 0 || strcmp(word, "-g") == 0;
		return true;
	}
	return word[0] >= '0' && word[0] <= '9'; /* timeout 5s, nice -n 10 */
}

static void take_script(
	struct judge *judge, const struct command *command, const char *word, size_t len)
{
	judge->found |= is_in(LANGUAGES, command->program) ? judge_code(word, len, judge->nesting)
							   : judge_line(word, len, judge->nesting);
}

static void take_argument(
	struct judge *judge, struct command *command, const char *word, size_t len)
{
	bool is_option = word[0] == '-' && word[1];

	if (command->takes_script || strcmp(command->program, "eval") == 0) {
		take_script(judge, command, word, len);
		command->takes_script = false;
		command->arguments++;
		return;
	}
	if (is_option) {
		char last = word[len - 1];

		take_options(command, word);
		command->takes_script = word[1] != '-' && (last == 'c' || last == 'e') &&
					(is_in(SHELLS " " LANGUAGES " su", command->program));
	} else if (strcmp(word, "-") != 0) {
		command->arguments++;
	}
	take_rule_words(command, word);
}

static void on_word(void *arg, const char *word, size_t len, bool is_redirect)
{
	struct judge *judge = arg;
	struct command *command = current(judge);

	if (is_redirect) {
		take_rule_words(command, word);
		return;
	}
	if (command->has_program) {
		take_argument(judge, command, word, len);
		return;
	}
	if (strcmp(word, "{") == 0) {
		judge->braces++;
	} else if (strcmp(word, "}") == 0) {
		if (judge->braces > 0 && --judge->braces == 0)
			judge->function[0] = '\0';
	} else if (!is_before_program(command, word)) {
		take_program(judge, command, word);
	}
}

/* A function that calls itself, twice at a time or without waiting. */
static bool is_bomb(const struct judge *judge, const struct command *command, enum shell_sign sign)
{
	bool calls_itself = judge->braces > 0 && judge->function[0] &&
			    strcmp(command->program, judge->function) == 0;

	return calls_itself &&
	       (sign == SHELL_BACKGROUND || strcmp(command->before, command->program) == 0);
}

/* The end of a command; what it wrote goes to the next one of its pipe, or to the command that it stands in. */
static void end_command(struct judge *judge, enum shell_sign sign)
{
	struct command *command = current(judge);
	danger_set feeding = command->piped | feeds(command->program);
	struct command next = {0};

	judge->found |= judge_command(command);
	if (is_bomb(judge, command, sign))
		judge->found |= (danger_set)1 << FORK_BOMB;
	if (judge->substituted[judge->depth])
		judge->levels[judge->depth - 1].from |= feeding;
	if (sign == SHELL_PIPE) {
		next.piped = feeding;
		memcpy(next.before, command->program, sizeof(next.before));
	}
	*command = next;
}

static void enter(struct judge *judge, bool is_substituted)
{
	if (judge->depth + 1 >= LEVELS_MAX)
		return;
	judge->depth++;
	judge->levels[judge->depth] = (struct command){0};
	judge->substituted[judge->depth] = is_substituted;
}

static void on_sign(void *arg, enum shell_sign sign)
{
	struct judge *judge = arg;
	struct command *command = current(judge);

	switch (sign) {
	case SHELL_OPEN:
		/* name() begins a function. */
		if (command->has_program && command->arguments == 0 && !judge->function[0])
			memcpy(judge->function, command->program, sizeof(judge->function));
		enter(judge, false);
		break;
	case SHELL_SUBSTITUTE:
	case SHELL_INSIDE:
		enter(judge, sign == SHELL_SUBSTITUTE);
		break;
	case SHELL_CLOSE:
		end_command(judge, SHELL_END);
		if (judge->depth > 0)
			judge->depth--;
		/* What comes after name() is its body. */
		if (judge->function[0] && judge->braces == 0 &&
			strcmp(current(judge)->program, judge->function) == 0)
			*current(judge) = (struct command){0};
		break;
	default:
		end_command(judge, sign);
		if (judge->braces == 0 && sign != SHELL_PIPE)
			judge->function[0] = '\0';
		break;
	}
}

/* A here-document: code, if it goes to an interpreter. */
static void on_document(void *arg, const char *text, size_t len)
{
	struct judge *judge = arg;
	struct command *command = current(judge);

	if (runs_input(command))
		take_script(judge, command, text, len);
}

static const struct shell_events events = {on_word, on_sign, on_document};

static danger_set finish(struct judge *judge)
{
	danger_set found;

	for (; judge->depth > 0; judge->depth--)
		end_command(judge, SHELL_END);
	end_command(judge, SHELL_END);
	found = judge->found;
	free(judge);
	return found;
}

static struct judge *judge_new(unsigned nesting)
{
	struct judge *judge = mem_new(sizeof(*judge));

	judge->nesting = nesting + 1;
	return judge;
}

static danger_set judge_line(const char *text, size_t len, unsigned nesting)
{
	struct judge *judge;

	if (nesting >= NESTING_MAX)
		return 0;
	judge = judge_new(nesting);
	shell_scan(text, len, &events, judge);
	return finish(judge);
}

static danger_set judge_words(const char *const *argv, unsigned nesting)
{
	struct judge *judge = judge_new(nesting);

	for (; *argv; argv++)
		on_word(judge, *argv, strlen(*argv), false);
	return finish(judge);
}

/* --- code in other languages --- */

struct call {
	char name[PROGRAM_MAX]; /* the last part of the name before a parenthesis */
	size_t name_len;
	unsigned depth; /* of parentheses in a call that runs a command; 0: not in one */
	char *strings[CALL_MAX + 1];
	size_t count;
};

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static bool runs_commands(const char *name)
{
	return is_in("system popen popen2 exec execSync execFile execFileSync spawn spawnSync run "
		     "call check_call check_output Popen getoutput getstatusoutput shell_exec "
		     "passthru create_subprocess_shell create_subprocess_exec",
		name);
}

static danger_set end_call(struct call *call, unsigned nesting)
{
	danger_set found = 0;

	if (call->count > 1)
		found = judge_words((const char *const *)call->strings, nesting);
	for (size_t i = 0; i < call->count; i++)
		free(take_ptr(&call->strings[i]));
	call->count = 0;
	return found;
}

static danger_set take_string(struct call *call, const char *text, size_t len, unsigned nesting)
{
	auto_free char *copy = mem_new(len + 1);
	struct command command = {0};
	danger_set found;

	memcpy(copy, text, len);
	take_rule_words(&command, copy);
	found = judge_command(&command);
	if (call->depth > 0) {
		found |= judge_line(copy, strlen(copy), nesting);
		if (call->count < CALL_MAX)
			call->strings[call->count++] = take_ptr(&copy);
	}
	return found;
}

/* The length of a string that begins with a quote, up to the quote at its end or the end of its line. */
static size_t string_length(const char *text, size_t len)
{
	size_t at = 1;

	while (at < len && text[at] != text[0] && (text[at] != '\n' || text[0] == '`'))
		at += text[at] == '\\' && at + 1 < len ? 2 : 1;
	return at < len ? at : len;
}

static danger_set take_sign(struct call *call, char c, unsigned nesting)
{
	if (c == '(') {
		call->name[call->name_len] = '\0';
		if (call->depth > 0 || runs_commands(call->name))
			call->depth++;
	} else if (c == ')' && call->depth > 0 && --call->depth == 0) {
		return end_call(call, nesting);
	}
	call->name_len = 0;
	return 0;
}

static danger_set judge_code(const char *text, size_t len, unsigned nesting)
{
	struct call call = {0};
	danger_set found = 0;

	if (nesting >= NESTING_MAX)
		return 0;
	for (size_t at = 0; at < len; at++) {
		char c = text[at];

		if (c == '\'' || c == '"' || c == '`') {
			size_t end = string_length(text + at, len - at);

			found |= take_string(&call, text + at + 1, end - 1, nesting + 1);
			at += end;
		} else if (is_name(c)) {
			if (call.name_len + 1 < sizeof(call.name))
				call.name[call.name_len++] = c;
		} else {
			found |= take_sign(&call, c, nesting + 1);
		}
	}
	return found | end_call(&call, nesting + 1);
}

/* --- texts --- */

static danger_set judge_text(const struct buf *squeezed)
{
	danger_set found = 0;

	for (size_t i = 0; i < RULE_COUNT; i++) {
		for (const char *list = rules[i].texts; list && *list;) {
			size_t len = strcspn(list, " ");

			if (squeezed->len > 0 && memmem(squeezed->data, squeezed->len, list, len))
				found |= (danger_set)1 << i;
			list += len + (list[len] == ' ');
		}
	}
	return found;
}

static void squeeze(struct buf *to, const char *text, size_t len)
{
	for (size_t i = 0; i < len;) {
		size_t from = i;

		while (i < len && !strchr(" \t\r\n", text[i]))
			i++;
		buf_append(to, text + from, i - from);
		while (i < len && (!text[i] || strchr(" \t\r\n", text[i])))
			i++;
	}
}

static danger_set judge_squeezed(const char *text, size_t len)
{
	auto_(buf_fini) struct buf squeezed = BUF_INIT(len + 1);

	squeeze(&squeezed, text, len);
	return judge_text(&squeezed);
}

/* --- for everybody --- */

danger_set danger_of_argv(const char *const *argv)
{
	danger_set found = judge_words(argv, 0);

	for (; *argv; argv++)
		found |= judge_squeezed(*argv, strlen(*argv));
	return found;
}

danger_set danger_of_input(const char *const *argv, const char *input, size_t len)
{
	struct judge *judge = judge_new(0);
	danger_set found = 0;

	for (; *argv; argv++)
		on_word(judge, *argv, strlen(*argv), false);
	if (runs_input(current(judge))) {
		on_document(judge, input, len);
		found = judge->found | judge_squeezed(input, len);
	}
	free(judge);
	return found;
}

danger_set danger_of_code(const char *language, const char *code)
{
	size_t len = strlen(code);
	danger_set found = strcmp(language, "shell") == 0 ? judge_line(code, len, 0)
							  : judge_code(code, len, 0);

	return found | judge_squeezed(code, len);
}

void danger_each(
	danger_set set, void (*take)(void *arg, const char *name, const char *reason), void *arg)
{
	for (size_t i = 0; i < RULE_COUNT; i++) {
		if (set >> i & 1)
			take(arg, rules[i].name, rules[i].reason);
	}
}

static void append_name(void *arg, const char *name, const char *reason)
{
	(void)reason;
	json_array_append_new(arg, json_string(name));
}

json_t *danger_to_json(danger_set set)
{
	json_t *list = json_array();

	danger_each(set, append_name, list);
	return list;
}

static void print_name(void *arg, const char *name, const char *reason)
{
	char *text = arg;
	size_t len = strlen(text);

	(void)reason;
	format_append(text, DANGER_NAMES_MAX, len, "%s%s", len ? "," : "", name);
}

void danger_names(danger_set set, char text[DANGER_NAMES_MAX])
{
	text[0] = '\0';
	danger_each(set, print_name, text);
}

const char *const danger_policies[] = {"flag", "confirm", "refuse", NULL};

const char *danger_policy_name(enum danger_policy policy)
{
	return danger_policies[policy];
}

int danger_policy_parse(const char *name, enum danger_policy *ret_policy)
{
	for (int i = 0; i < DANGER_POLICY_COUNT; i++) {
		if (strcmp(danger_policies[i], name) == 0) {
			*ret_policy = (enum danger_policy)i;
			return 0;
		}
	}
	return -EINVAL;
}
