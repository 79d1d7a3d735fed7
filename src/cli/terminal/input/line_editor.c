/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/terminal/input/line_editor.h"

#include "cli/cli.h"
#include "cli/terminal/terminal.h"

#include <dlfcn.h>
#include <errno.h>
#include <histedit.h>
#include <locale.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

/* The name that the headers of libedit 3 go with. */
#define LIBRARY	     "libedit.so.2"
#define HISTORY_SIZE 2000

#define LIBRARY_FUNCTIONS(X)                                                                       \
	X(el_end)                                                                                  \
	X(el_get)                                                                                  \
	X(el_gets)                                                                                 \
	X(el_init)                                                                                 \
	X(el_resize)                                                                               \
	X(el_set)                                                                                  \
	X(el_source)                                                                               \
	X(history)                                                                                 \
	X(history_end)                                                                             \
	X(history_init)

/* Stays loaded until the process ends; what libedit calls back has no other way to its functions. */
static struct {
#define X(function) __typeof__(function) *function;
	LIBRARY_FUNCTIONS(X)
#undef X
} library;

struct line_editor {
	struct interrupt *interrupt;
	const char *history_path;
	const char *prompt;
	bool has_terminal;
	EditLine *edit; /* NULL: lines are read as they are */
	History *history;
	struct buf pending; /* what was read after the line */
};

/* Waits for input: 1, or -EINTR when a signal has come. */
static int wait_input(struct line_editor *editor)
{
	struct err err;

	for (;;) {
		struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN},
			{.fd = interrupt_fd(editor->interrupt), .events = POLLIN}};

		/* libedit has shown the line again, if a signal of the terminal woke us. */
		if (poll(fds, 2, -1) < 0)
			continue;
		if (interrupt_check(editor->interrupt, &err) < 0)
			return -EINTR;
		if (fds[0].revents)
			return 1;
	}
}

/* --- libedit --- */

static bool load(void)
{
	void *handle = dlopen(LIBRARY, RTLD_LAZY | RTLD_LOCAL);

	if (!handle)
		return false;
#define X(function)                                                                                \
	library.function = (__typeof__(library.function))dlsym(handle, #function);                 \
	if (!library.function)                                                                     \
		return false;
	LIBRARY_FUNCTIONS(X)
#undef X
	return true;
}

static struct line_editor *editor_of(EditLine *edit)
{
	struct line_editor *editor = NULL;

	library.el_get(edit, EL_CLIENTDATA, &editor);
	return editor;
}

static char *tell_prompt(EditLine *edit)
{
	return (char *)editor_of(edit)->prompt;
}

/* A character of the terminal, in whatever pieces it comes: 1, 0 at the end, -1. */
static int read_character(EditLine *edit, wchar_t *ret)
{
	struct line_editor *editor = editor_of(edit);
	mbstate_t state = {0};

	for (;;) {
		char byte;
		ssize_t n = wait_input(editor) < 0 ? -1 : read(STDIN_FILENO, &byte, 1);
		size_t len;

		if (n <= 0)
			return (int)n;
		len = mbrtowc(ret, &byte, 1, &state);
		if (len == (size_t)-1)
			memset(&state, 0, sizeof(state)); /* what is no text is left out */
		else if (len != (size_t)-2)
			return 1;
	}
}

static void set_up(struct line_editor *editor)
{
	HistEvent event;

	library.el_set(editor->edit, EL_CLIENTDATA, editor);
	library.el_set(editor->edit, EL_PROMPT, tell_prompt);
	library.el_set(editor->edit, EL_EDITOR, "emacs");
	library.el_set(editor->edit, EL_GETCFN, read_character);
	library.el_set(editor->edit, EL_SIGNAL, 1);
	library.el_set(editor->edit, EL_BIND, "\t", "ed-insert", NULL);
	library.el_set(editor->edit, EL_BIND, "^R", "em-inc-search-prev", NULL);
	if (editor->history) {
		library.history(editor->history, &event, H_SETSIZE, HISTORY_SIZE);
		library.history(editor->history, &event, H_SETUNIQUE, 1);
		if (editor->history_path)
			library.history(editor->history, &event, H_LOAD, editor->history_path);
		library.el_set(editor->edit, EL_HIST, library.history, editor->history);
	}
	library.el_source(editor->edit, NULL); /* the user's ~/.editrc */
}

struct line_editor *line_editor_new(struct interrupt *interrupt, const char *history)
{
	struct line_editor *editor = mem_new(sizeof(*editor));

	*editor = (struct line_editor){.interrupt = interrupt,
		.history_path = history,
		.has_terminal = terminal_is_there(),
		.pending = BUF_INIT(LINE_EDITOR_MAX)};
	if (!editor->has_terminal || !load())
		return editor;
	setlocale(LC_CTYPE, "C.UTF-8");
	editor->edit = library.el_init("sandlot", stdin, stdout, stderr);
	if (!editor->edit)
		return editor;
	editor->history = library.history_init();
	set_up(editor);
	return editor;
}

void line_editor_free(struct line_editor *editor)
{
	HistEvent event;

	if (!editor)
		return;
	if (editor->history && editor->history_path)
		library.history(editor->history, &event, H_SAVE, editor->history_path);
	if (editor->edit)
		library.el_end(editor->edit);
	if (editor->history)
		library.history_end(editor->history);
	buf_fini(&editor->pending);
	free(editor);
}

static int read_edited(struct line_editor *editor, struct buf *line, struct err *err)
{
	HistEvent event;
	const char *text;
	int count = 0;

	library.el_resize(editor->edit);
	editor->interrupt->signal = 0;
	text = library.el_gets(editor->edit, &count);
	if (editor->interrupt->signal)
		return -EINTR;
	if (!text || count <= 0)
		return 0;
	if (editor->history && text[strspn(text, " \t\r\n")])
		library.history(editor->history, &event, H_ENTER, text);
	if (buf_append(line, text, (size_t)count) < 0)
		return err_set(err, ERR_TOO_LARGE, "the input has more than 1 MiB");
	return 1;
}

/* --- without it --- */

static int read_plain(struct line_editor *editor, struct buf *line, struct err *err)
{
	struct buf *pending = &editor->pending;

	for (;;) {
		char *end = pending->len ? memchr(pending->data, '\n', pending->len) : NULL;
		size_t len = end ? (size_t)(end + 1 - (char *)pending->data) : 0;
		char chunk[4096];
		ssize_t n;

		if (end) {
			buf_append(line, pending->data, len);
			memmove(pending->data, pending->data + len, pending->len - len);
			pending->len -= len;
			return line->failed ? err_set(err, ERR_TOO_LARGE,
						      "the input has more than 1 MiB")
					    : 1;
		}
		if (wait_input(editor) < 0)
			return -EINTR;
		n = read(STDIN_FILENO, chunk, sizeof(chunk));
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return err_sys(err, "read standard input");
		if (n == 0 && pending->len == 0)
			return 0;
		/* The last line counts without its line feed too. */
		if (n == 0)
			buf_append(pending, "\n", 1);
		else if (n > 0)
			buf_append(pending, chunk, (size_t)n);
		if (pending->failed)
			return err_set(err, ERR_TOO_LARGE, "a line has more than 1 MiB");
	}
}

int line_editor_read(
	struct line_editor *editor, const char *prompt, struct buf *line, struct err *err)
{
	int r;

	editor->prompt = prompt;
	interrupt_watch(editor->interrupt, true);
	if (editor->has_terminal && !editor->edit)
		r = cli_write(STDOUT_FILENO, prompt, strlen(prompt), err);
	else
		r = 0;
	if (r == 0)
		r = editor->edit ? read_edited(editor, line, err) : read_plain(editor, line, err);
	interrupt_watch(editor->interrupt, false);
	return r;
}
