/* SPDX-License-Identifier: Apache-2.0 */
/* Those who watch an execution: its output and its end. */
#include "core/execution/execution.h"
#include "core/execution/execution_state.h"

struct execution_watcher {
	atomic_int refs;
	struct execution_watcher *next;
	const struct execution_events *events;
	void *arg;
};

static void watcher_unref(struct execution_watcher *watcher)
{
	if (atomic_fetch_sub(&watcher->refs, 1) > 1)
		return;
	watcher->events->release(watcher->arg);
	free(watcher);
}

bool execution_watch(struct execution *execution, const struct execution_events *events, void *arg)
{
	struct execution_watcher *watcher = mem_new(sizeof(*watcher));
	bool is_late;

	*watcher = (struct execution_watcher){.refs = 1, .events = events, .arg = arg};
	pthread_mutex_lock(&execution->lock);
	is_late = execution->is_over;
	if (!is_late) {
		watcher->next = execution->watchers;
		execution->watchers = watcher;
	}
	pthread_mutex_unlock(&execution->lock);
	if (is_late)
		free(watcher);
	return !is_late;
}

void execution_unwatch(struct execution *execution, void *arg)
{
	struct execution_watcher *found = NULL;

	pthread_mutex_lock(&execution->lock);
	for (struct execution_watcher **at = &execution->watchers; *at; at = &(*at)->next) {
		if ((*at)->arg == arg) {
			found = *at;
			*at = found->next;
			break;
		}
	}
	pthread_mutex_unlock(&execution->lock);
	if (found)
		watcher_unref(found);
}

/* Under the lock: what they do is to wake a thread. */
void execution_tell_output(struct execution *execution)
{
	pthread_mutex_lock(&execution->lock);
	for (struct execution_watcher *w = execution->watchers; w; w = w->next) {
		if (w->events->output)
			w->events->output(w->arg);
	}
	pthread_mutex_unlock(&execution->lock);
}

/* Without a lock, for they look at the record and answer clients. From then on nobody can watch. */
void execution_tell_over(struct execution *execution, const struct execution_record *record)
{
	struct execution_watcher *watcher;

	pthread_mutex_lock(&execution->lock);
	execution->is_over = true;
	watcher = take_ptr(&execution->watchers);
	pthread_mutex_unlock(&execution->lock);
	while (watcher) {
		struct execution_watcher *next = watcher->next;

		if (watcher->events->over)
			watcher->events->over(watcher->arg, record);
		watcher_unref(watcher);
		watcher = next;
	}
}
