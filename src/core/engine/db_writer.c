/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/db_writer.h"

#include <pthread.h>
#include <stdbool.h>

struct db_write {
	struct db_write *next;
	void (*work)(void *arg);
	void *arg;
};

struct db_writer {
	pthread_t thread;
	pthread_mutex_t lock; /* what follows */
	pthread_cond_t changed;
	struct db_write *first, **last;
	bool closing;
};

static struct db_write *take_next(struct db_writer *writer)
{
	struct db_write *write;

	pthread_mutex_lock(&writer->lock);
	while (!writer->first && !writer->closing)
		pthread_cond_wait(&writer->changed, &writer->lock);
	write = writer->first;
	if (write)
		writer->first = write->next;
	if (!writer->first)
		writer->last = &writer->first;
	pthread_mutex_unlock(&writer->lock);
	return write;
}

static void *run(void *arg)
{
	struct db_writer *writer = arg;
	struct db_write *write;

	pthread_setname_np(pthread_self(), "db-writer");
	while ((write = take_next(writer))) {
		write->work(write->arg);
		free(write);
	}
	return NULL;
}

int db_writer_open(struct db_writer **ret_writer, struct err *err)
{
	struct db_writer *writer = mem_new(sizeof(*writer));
	int r;

	pthread_mutex_init(&writer->lock, NULL);
	pthread_cond_init(&writer->changed, NULL);
	writer->last = &writer->first;
	r = -pthread_create(&writer->thread, NULL, run, writer);
	if (r < 0) {
		free(writer);
		return err_from(err, r, "start the database writer");
	}
	*ret_writer = writer;
	return 0;
}

void db_writer_close(struct db_writer *writer)
{
	if (!writer)
		return;
	pthread_mutex_lock(&writer->lock);
	writer->closing = true;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
	pthread_join(writer->thread, NULL);
	pthread_mutex_destroy(&writer->lock);
	pthread_cond_destroy(&writer->changed);
	free(writer);
}

void db_writer_put(struct db_writer *writer, void (*work)(void *arg), void *arg)
{
	struct db_write *write = mem_new(sizeof(*write));

	write->work = work;
	write->arg = arg;
	pthread_mutex_lock(&writer->lock);
	*writer->last = write;
	writer->last = &write->next;
	pthread_cond_signal(&writer->changed);
	pthread_mutex_unlock(&writer->lock);
}
