/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/db_writer.h"
#include "core_fixture.h"

#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct db_writer *open_writer(void)
{
	struct db_writer *writer = NULL;
	struct err err = {0};

	if (db_writer_open(&writer, &err) < 0)
		fail_msg("%s", err.message);
	return writer;
}

struct note {
	struct book *book;
	unsigned number;
};

/* Read after the database writer is closed; written on its thread alone. */
struct book {
	unsigned count;
	unsigned numbers[1000];
	pthread_t thread;
	sem_t begun, may_go_on;
};

static void write_down(void *arg)
{
	struct note *note = arg;

	note->book->numbers[note->book->count++] = note->number;
	note->book->thread = pthread_self();
}

static void pause_for(void *arg)
{
	struct book *book = arg;

	sem_post(&book->begun);
	world_await(&book->may_go_on);
}

static void all_is_done_in_order_on_a_thread_of_its_own(void **state)
{
	struct db_writer *writer = open_writer();
	struct note notes[1000];
	struct book book = {0};

	(void)state;
	for (unsigned i = 0; i < array_len(notes); i++) {
		notes[i] = (struct note){&book, i};
		db_writer_put(writer, write_down, &notes[i]);
	}
	db_writer_close(writer); /* does all first */
	assert_int_equal(book.count, 1000);
	for (unsigned i = 0; i < book.count; i++)
		assert_int_equal(book.numbers[i], i);
	assert_false(pthread_equal(book.thread, pthread_self()));
}

static void handing_over_does_not_wait_for_what_is_under_way(void **state)
{
	struct db_writer *writer = open_writer();
	struct note notes[3];
	struct book book = {0};

	(void)state;
	sem_init(&book.begun, 0, 0);
	sem_init(&book.may_go_on, 0, 0);
	db_writer_put(writer, pause_for, &book);
	world_await(&book.begun);
	for (unsigned i = 0; i < array_len(notes); i++) {
		notes[i] = (struct note){&book, i};
		db_writer_put(writer, write_down, &notes[i]);
	}
	sem_post(&book.may_go_on);
	db_writer_close(writer);
	assert_int_equal(book.count, 3);
}

struct chain {
	struct db_writer *writer;
	unsigned left;
	sem_t done;
};

static void put_another(void *arg)
{
	struct chain *chain = arg;

	if (chain->left-- > 0)
		db_writer_put(chain->writer, put_another, chain);
	else
		sem_post(&chain->done);
}

static void work_may_hand_over_more(void **state)
{
	struct chain chain = {.writer = open_writer(), .left = 100};

	(void)state;
	sem_init(&chain.done, 0, 0);
	db_writer_put(chain.writer, put_another, &chain);
	world_await(&chain.done);
	db_writer_close(chain.writer);
}

struct writer {
	pthread_t thread;
	struct db_writer *writer;
	atomic_uint *sum;
};

static void add_one(void *arg)
{
	atomic_fetch_add((atomic_uint *)arg, 1);
}

static void *hand_over_many(void *arg)
{
	struct writer *writer = arg;

	for (unsigned i = 0; i < 1000; i++)
		db_writer_put(writer->writer, add_one, writer->sum);
	return NULL;
}

static void nothing_is_lost_of_what_many_hand_over(void **state)
{
	struct writer writers[4];
	atomic_uint sum = 0;
	struct db_writer *writer = open_writer();

	(void)state;
	for (size_t i = 0; i < array_len(writers); i++) {
		writers[i] = (struct writer){.writer = writer, .sum = &sum};
		assert_int_equal(
			pthread_create(&writers[i].thread, NULL, hand_over_many, &writers[i]), 0);
	}
	for (size_t i = 0; i < array_len(writers); i++)
		pthread_join(writers[i].thread, NULL);
	db_writer_close(writer);
	assert_int_equal(sum, 4000);
}

static void an_idle_one_and_none_can_be_closed(void **state)
{
	(void)state;
	db_writer_close(open_writer());
	db_writer_close(NULL);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_done_in_order_on_a_thread_of_its_own),
		cmocka_unit_test(handing_over_does_not_wait_for_what_is_under_way),
		cmocka_unit_test(work_may_hand_over_more),
		cmocka_unit_test(nothing_is_lost_of_what_many_hand_over),
		cmocka_unit_test(an_idle_one_and_none_can_be_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
