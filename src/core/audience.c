/* SPDX-License-Identifier: Apache-2.0 */
#include "core/audience.h"

#include "core/process_state.h"

static void watcher_unref(struct process_watcher *watcher)
{
	if (atomic_fetch_sub(&watcher->refs, 1) > 1)
		return;
	watcher->events->release(watcher->arg);
	free(watcher);
}

bool audience_add(struct process *process, const struct process_events *events, void *arg)
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

void audience_remove(struct process *process, void *arg)
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
struct gathering {
	struct process_watcher *few[4], **all;
	size_t count;
};

static void gather(struct process *process, struct gathering *gathering)
{
	size_t count = 0;

	pthread_mutex_lock(&process->lock);
	for (struct process_watcher *w = process->watchers; w; w = w->next)
		count++;
	gathering->all = count <= array_len(gathering->few) ? gathering->few
							    : mem_new(count * sizeof(void *));
	gathering->count = 0;
	for (struct process_watcher *w = process->watchers; w; w = w->next) {
		atomic_fetch_add(&w->refs, 1);
		gathering->all[gathering->count++] = w;
	}
	pthread_mutex_unlock(&process->lock);
}

static void disperse(struct gathering *gathering)
{
	for (size_t i = 0; i < gathering->count; i++)
		watcher_unref(gathering->all[i]);
	if (gathering->all != gathering->few)
		free(gathering->all);
}

/* What there is to tell: an event, and what it brings. */
struct news {
	enum { STARTED, OUTPUT, DRAINED, ENDED, DESERTED } event;
	uint32_t pid;
	int stream;
	const uint8_t *data;
	size_t len;
};

static void tell_one(
	const struct process *process, const struct process_watcher *w, const struct news *news)
{
	const struct process_events *events = w->events;

	switch (news->event) {
	case STARTED:
		if (events->started)
			events->started(w->arg, news->pid);
		break;
	case OUTPUT:
		if (events->output)
			events->output(w->arg, news->stream, news->data, news->len);
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

static void tell(struct process *process, const struct news *news)
{
	struct gathering gathering;

	gather(process, &gathering);
	for (size_t i = 0; i < gathering.count; i++)
		tell_one(process, gathering.all[i], news);
	disperse(&gathering);
}

void audience_tell_started(struct process *process, uint32_t pid)
{
	tell(process, &(struct news){.event = STARTED, .pid = pid});
}

void audience_tell_output(struct process *process, int stream, const uint8_t *data, size_t len)
{
	tell(process, &(struct news){.event = OUTPUT, .stream = stream, .data = data, .len = len});
}

void audience_tell_drained(struct process *process)
{
	tell(process, &(struct news){.event = DRAINED});
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

void audience_tell_ended(struct process *process)
{
	bool has_survivors;

	pthread_mutex_lock(&process->lock);
	process->concluded = true;
	has_survivors = process->record.survivors > 0;
	pthread_mutex_unlock(&process->lock);
	tell(process, &(struct news){.event = ENDED});
	drop(process, !has_survivors);
	pthread_mutex_lock(&process->lock);
	process->reported = true;
	pthread_mutex_unlock(&process->lock);
}

void audience_tell_deserted(struct process *process)
{
	tell(process, &(struct news){.event = DESERTED});
	drop(process, true);
}

void audience_dismiss(struct process *process)
{
	drop(process, true);
}
