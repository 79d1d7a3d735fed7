/* SPDX-License-Identifier: Apache-2.0 */
#include "core/process/process_watchers.h"

#include "core/process/process_state.h"

static void watcher_unref(struct process_watcher *watcher)
{
	if (atomic_fetch_sub(&watcher->refs, 1) > 1)
		return;
	watcher->events->release(watcher->arg);
	free(watcher);
}

bool process_watchers_add(struct process *process, const struct process_events *events, void *arg)
{
	struct process_watcher *watcher = mem_new(sizeof(*watcher));
	bool is_late;

	watcher->refs = 1;
	watcher->events = events;
	watcher->arg = arg;
	pthread_mutex_lock(&process->lock);
	is_late = process->concluded && !(events->deserted && process->record.survivors > 0);
	if (!is_late) {
		watcher->next = process->watchers;
		process->watchers = watcher;
	}
	pthread_mutex_unlock(&process->lock);
	if (is_late)
		free(watcher);
	return !is_late;
}

void process_watchers_remove(struct process *process, void *arg)
{
	struct process_watcher *found = NULL;

	pthread_mutex_lock(&process->lock);
	for (struct process_watcher **at = &process->watchers; *at; at = &(*at)->next) {
		if ((*at)->arg == arg) {
			found = *at;
			*at = found->next;
			break;
		}
	}
	pthread_mutex_unlock(&process->lock);
	if (found)
		watcher_unref(found);
}

/* The watchers of this moment, with a reference of each; most processes have one. */
struct watcher_list {
	struct process_watcher *few[4], **all;
	size_t count;
};

static void collect(struct process *process, struct watcher_list *list)
{
	size_t count = 0;

	pthread_mutex_lock(&process->lock);
	for (struct process_watcher *w = process->watchers; w; w = w->next)
		count++;
	list->all = count <= array_len(list->few) ? list->few : mem_new(count * sizeof(void *));
	list->count = 0;
	for (struct process_watcher *w = process->watchers; w; w = w->next) {
		atomic_fetch_add(&w->refs, 1);
		list->all[list->count++] = w;
	}
	pthread_mutex_unlock(&process->lock);
}

static void disperse(struct watcher_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		watcher_unref(list->all[i]);
	if (list->all != list->few)
		free(list->all);
}

/* What there is to tell: an event, and what it brings. */
struct notice {
	enum { STARTED, OUTPUT, DRAINED, ENDED, DESERTED } event;
	uint32_t pid;
	int stream;
	const uint8_t *data;
	size_t len;
};

static void tell_one(
	const struct process *process, const struct process_watcher *w, const struct notice *notice)
{
	const struct process_events *events = w->events;

	switch (notice->event) {
	case STARTED:
		if (events->started)
			events->started(w->arg, notice->pid);
		break;
	case OUTPUT:
		if (events->output)
			events->output(w->arg, notice->stream, notice->data, notice->len);
		break;
	case DRAINED:
		if (events->drained)
			events->drained(w->arg);
		break;
	case ENDED:
		if (events->ended)
			events->ended(w->arg, &process->end);
		break;
	case DESERTED:
		if (events->deserted)
			events->deserted(w->arg);
		break;
	}
}

static void tell(struct process *process, const struct notice *notice)
{
	struct watcher_list list;

	collect(process, &list);
	for (size_t i = 0; i < list.count; i++)
		tell_one(process, list.all[i], notice);
	disperse(&list);
}

void process_watchers_tell_started(struct process *process, uint32_t pid)
{
	tell(process, &(struct notice){.event = STARTED, .pid = pid});
}

void process_watchers_tell_output(
	struct process *process, int stream, const uint8_t *data, size_t len)
{
	tell(process,
		&(struct notice){.event = OUTPUT, .stream = stream, .data = data, .len = len});
}

void process_watchers_tell_drained(struct process *process)
{
	tell(process, &(struct notice){.event = DRAINED});
}

/* Drops all, or all but those that wait for the last survivor. */
static void drop(struct process *process, bool with_patient)
{
	struct process_watcher *watcher = NULL;

	pthread_mutex_lock(&process->lock);
	for (struct process_watcher **at = &process->watchers; *at;) {
		struct process_watcher *next = *at;

		if (next->events->deserted && !with_patient) {
			at = &next->next;
			continue;
		}
		*at = next->next;
		next->next = watcher;
		watcher = next;
	}
	pthread_mutex_unlock(&process->lock);
	while (watcher) {
		struct process_watcher *next = watcher->next;

		watcher_unref(watcher);
		watcher = next;
	}
}

void process_watchers_tell_ended(struct process *process)
{
	bool has_survivors;

	pthread_mutex_lock(&process->lock);
	process->concluded = true;
	has_survivors = process->record.survivors > 0;
	pthread_mutex_unlock(&process->lock);
	tell(process, &(struct notice){.event = ENDED});
	drop(process, !has_survivors);
	pthread_mutex_lock(&process->lock);
	process->reported = true;
	pthread_mutex_unlock(&process->lock);
}

void process_watchers_tell_deserted(struct process *process)
{
	tell(process, &(struct notice){.event = DESERTED});
	drop(process, true);
}

void process_watchers_dismiss(struct process *process)
{
	drop(process, true);
}
