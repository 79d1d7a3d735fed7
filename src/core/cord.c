/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cord.h"

#include "core/sandbox_state.h"

struct cord {
	struct sandbox *sandbox;
	struct cord *next, **at; /* under sandbox.state, as all that follows */
	bool is_cut;
	void (*cut)(void *arg); /* NULL: not tied yet */
	void *arg;
};

struct cord *cord_new(struct sandbox *sandbox)
{
	struct cord *cord = mem_new(sizeof(*cord));

	cord->sandbox = sandbox_ref(sandbox);
	pthread_mutex_lock(&sandbox->state);
	cord->at = &sandbox->cords;
	cord->next = sandbox->cords;
	if (cord->next)
		cord->next->at = &cord->next;
	sandbox->cords = cord;
	pthread_mutex_unlock(&sandbox->state);
	return cord;
}

void cord_free(struct cord *cord)
{
	if (!cord)
		return;
	pthread_mutex_lock(&cord->sandbox->state);
	*cord->at = cord->next;
	if (cord->next)
		cord->next->at = cord->at;
	pthread_mutex_unlock(&cord->sandbox->state);
	sandbox_unref(cord->sandbox);
	free(cord);
}

void cord_tie(struct cord *cord, void (*cut)(void *arg), void *arg)
{
	pthread_mutex_lock(&cord->sandbox->state);
	cord->cut = cut;
	cord->arg = arg;
	if (cord->is_cut)
		cut(arg);
	pthread_mutex_unlock(&cord->sandbox->state);
}

void cord_cut_all(struct sandbox *sandbox)
{
	pthread_mutex_lock(&sandbox->state);
	for (struct cord *cord = sandbox->cords; cord; cord = cord->next) {
		if (cord->cut && !cord->is_cut)
			cord->cut(cord->arg);
		cord->is_cut = true;
	}
	pthread_mutex_unlock(&sandbox->state);
}
