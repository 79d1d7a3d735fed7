/* SPDX-License-Identifier: Apache-2.0 */
/*
 * completion: writes the completions of a shell to standard output, or puts them where that shell
 * of this user looks for them. The shell's own files (~/.bashrc and the like) are never changed.
 */
#include "base/fd.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/home_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct completion_values {
	bool install;
};

static const struct option options[] = {
	{OPTION_FLAG, 0, "install", NULL, "put them where the shell looks for them",
		offsetof(struct completion_values, install)},
	{OPTION_END},
};

/* Where each shell looks: below $variable, or below the home directory if that is not set. */
static const struct place {
	const char *shell, *variable, *below_home, *file, *advice;
} places[] = {
	{"bash", "XDG_DATA_HOME", ".local/share", "bash-completion/completions/sandlot",
		"they need the package bash-completion, and act in the next shell"},
	{"fish", "XDG_CONFIG_HOME", ".config", "fish/completions/sandlot.fish",
		"they act in the next shell"},
	{"zsh", "XDG_DATA_HOME", ".local/share", "zsh/site-functions/_sandlot",
		"zsh looks there once ~/.zshrc has, before compinit: "
		"fpath=(~/.local/share/zsh/site-functions $fpath)"},
};

static int find_place(const char *shell, const struct place **ret_place, struct err *err)
{
	for (size_t i = 0; shell && i < array_len(places); i++) {
		if (strcmp(places[i].shell, shell) != 0)
			continue;
		*ret_place = &places[i];
		return 0;
	}
	return err_explain(err, ERR_INVALID, NULL, "sandlot completion --install bash",
		"completions are made for " COMPLETION_SHELLS ", not for \"%s\"",
		shell ? shell : "no shell");
}

/* The last part of $SHELL. */
static const char *own_shell(void)
{
	const char *shell = getenv("SHELL");
	const char *slash = shell ? strrchr(shell, '/') : NULL;

	return slash ? slash + 1 : shell;
}

static int write_file(const char *shell, const char *path, struct err *err)
{
	auto_free char *temporary = mem_printf("%s.%d", path, (int)getpid());
	auto_fd int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
	int r;

	if (!out)
		return err_sys(err, "make %s", temporary);
	(void)take_fd(&fd);
	r = completion_write(shell, out, err);
	if (fclose(out) != 0 && r == 0)
		r = err_sys(err, "write %s", temporary);
	if (r == 0 && rename(temporary, path) < 0)
		r = err_sys(err, "write %s", path);
	if (r < 0)
		unlink(temporary);
	return r;
}

static int install(const char *shell, struct err *err)
{
	const struct place *place;
	auto_free char *path = NULL;
	int r = find_place(shell, &place, err);

	if (r < 0)
		return r;
	path = home_file_path(place->variable, place->below_home, place->file);
	if (!path)
		return err_set(err, ERR_INVALID, "HOME does not name a directory");
	r = home_file_make_parents(path, 0777, err);
	if (r == 0)
		r = write_file(place->shell, path, err);
	if (r < 0)
		return r;
	cli_print("%s\n", path);
	cli_note("these are the completions of %s; %s", place->shell, place->advice);
	return 0;
}

static int run(struct cli *cli, const void *values, int argc, char **argv, struct err *err)
{
	const struct completion_values *v = values;

	(void)cli;
	if (argc == 0 || v->install)
		return install(argc > 0 ? argv[0] : own_shell(), err);
	return completion_write(argv[0], stdout, err);
}

const struct command cmd_completion = {
	.name = "completion",
	.operands = "[bash|fish|zsh]",
	.summary = "install completions for your shell, or write them",
	.details = "Without a shell it installs them for yours, which $SHELL names, and prints the "
		   "file.\n"
		   "With one it writes them to standard output.\n\n"
		   "  sandlot completion\n"
		   "  sandlot completion --install zsh\n"
		   "  eval \"$(sandlot completion bash)\"            # in ~/.bashrc\n"
		   "  source <(sandlot completion zsh)              # in ~/.zshrc\n"
		   "  sandlot completion fish | source              # in config.fish\n",
	.tables = {{options, 0}},
	.values_size = sizeof(struct completion_values),
	.min_operands = 0,
	.max_operands = 1,
	.verbatim_after = OPTION_ANYWHERE,
	.takes = COMMAND_TAKES_SHELLS,
	.run = run,
};
