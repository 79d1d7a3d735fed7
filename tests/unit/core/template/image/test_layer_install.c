/* SPDX-License-Identifier: Apache-2.0 */
#include "core/template/image/layer_install.h"

#include "sem_await.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define SHARE (LAYER_INSTALL_WRITERS / 4)
#define MANY  (3 * SHARE)

/* A driver whose writers wait until they are let go; then the layer is there already. */
struct world {
	struct driver driver; /* first: see write_layer */
	struct layer_installs installs;
	sem_t begun, go_on;
	atomic_uint now, most;
};

static int write_layer(struct driver *driver, const char *layer, int *ret_stream, struct err *err)
{
	struct world *world = (struct world *)driver;
	unsigned now = atomic_fetch_add(&world->now, 1) + 1;

	(void)layer, (void)ret_stream, (void)err;
	if (now > atomic_load(&world->most))
		atomic_store(&world->most, now);
	sem_post(&world->begun);
	sem_await(&world->go_on);
	atomic_fetch_sub(&world->now, 1);
	return -EEXIST;
}

static const struct driver_ops ops = {.write_layer = write_layer};

struct one {
	struct world *world;
	struct owner owner;
	struct digest digest;
	pthread_t thread;
};

static void *bring(void *arg)
{
	struct one *one = arg;
	struct layer_order order = {
		.owner = &one->owner, .blob = &one->digest, .diff_id = &one->digest};
	struct layer_installed installed;
	struct err err;

	assert_int_equal(layer_install(&one->world->installs, &one->world->driver, NULL, &order,
				 &installed, &err),
		1);
	return NULL;
}

static void begin(struct world *world, struct one *one, const char *user, int number)
{
	*one = (struct one){.world = world};
	snprintf(one->owner.organization, sizeof(one->owner.organization), "acme");
	snprintf(one->owner.user, sizeof(one->owner.user), "%s", user);
	digest_of(&number, sizeof(number), &one->digest);
	assert_int_equal(pthread_create(&one->thread, NULL, bring, one), 0);
}

static void the_writers_of_one_owner_wait_for_each_other_and_nobody_else_does(void **state)
{
	struct world world = {.driver = {.ops = &ops}};
	struct one many[MANY], other;

	(void)state;
	layer_installs_init(&world.installs);
	sem_init(&world.begun, 0, 0);
	sem_init(&world.go_on, 0, 0);
	for (int i = 0; i < MANY; i++)
		begin(&world, &many[i], "greedy", i);
	for (int i = 0; i < SHARE; i++)
		sem_await(&world.begun);
	begin(&world, &other, "other", MANY);
	sem_await(&world.begun);
	for (int i = 0; i <= MANY; i++)
		sem_post(&world.go_on);
	for (int i = 0; i < MANY; i++)
		pthread_join(many[i].thread, NULL);
	pthread_join(other.thread, NULL);
	assert_int_equal(world.most, SHARE + 1);
	layer_installs_fini(&world.installs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_writers_of_one_owner_wait_for_each_other_and_nobody_else_does),
	};

	return cmocka_run_group_tests_name("core/template/image/layer_install", tests, NULL, NULL);
}
