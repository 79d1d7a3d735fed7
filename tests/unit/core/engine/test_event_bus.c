/* SPDX-License-Identifier: Apache-2.0 */
#include "core/engine/event_bus.h"

#include "base/mem.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct owner alice = {"org", "alice"}, bob = {"org", "bob"};

struct heard {
	char text[512];
	uint64_t last;
};

static void hear(void *arg, const struct event *event)
{
	struct heard *heard = arg;
	size_t len = strlen(heard->text);

	assert_true(event->sequence > heard->last);
	heard->last = event->sequence;
	snprintf(heard->text + len, sizeof(heard->text) - len, "%s/%s ", event->type,
		event->subject);
}

static struct event_follower *follow(struct event_bus *bus, const struct owner *owner,
	const char *subject, const char *topics, struct heard *heard)
{
	return event_bus_follow(bus,
		&(struct event_filter){.owner = owner, .subject = subject, .topics = topics}, hear,
		heard);
}

static void each_follower_hears_of_its_own(void **state)
{
	struct event_bus *bus = event_bus_new(1000);
	struct heard all = {.last = 1000}, one = all, jobs = all, foreign = all;
	struct event_follower *followers[] = {follow(bus, &alice, NULL, NULL, &all),
		follow(bus, &alice, "a", NULL, &one), follow(bus, &alice, NULL, "job,port", &jobs),
		follow(bus, &bob, "a", NULL, &foreign)};

	(void)state;
	event_bus_publish(bus, &alice, "a", "sandbox.running", "{}");
	event_bus_publish(bus, &alice, "b", "sandbox.running", "{}");
	event_bus_publish(bus, &alice, "j", "job.queued", "{}");
	event_bus_publish(bus, &alice, "a", "jobber.x", "{}");
	event_bus_publish(bus, &bob, "a", "port.opened", "{}");
	assert_string_equal(
		all.text, "sandbox.running/a sandbox.running/b job.queued/j jobber.x/a ");
	assert_string_equal(one.text, "sandbox.running/a jobber.x/a ");
	assert_string_equal(jobs.text, "job.queued/j ");
	assert_string_equal(foreign.text, "port.opened/a ");
	for (size_t i = 0; i < array_len(followers); i++)
		event_bus_leave(bus, followers[i]);
	event_bus_publish(bus, &alice, "a", "sandbox.running", "{}");
	assert_string_equal(one.text, "sandbox.running/a jobber.x/a ");
	event_bus_leave(bus, NULL);
	event_bus_free(bus);
}

static void topics_that_do_not_exist_are_refused(void **state)
{
	const char *const good[] = {"sandbox", "job", "sandbox,start,port,network,job"};
	const char *const bad[] = {"", ",", "sandboxes", "sand", "job,", ",job", "job,,port",
		"job ", "sandbox,sandbox,sandbox,sandbox,sandbox,sandbox,sandbox,sandbox,sandbox"};
	struct err err;

	(void)state;
	for (size_t i = 0; i < array_len(good); i++)
		assert_int_equal(event_bus_check_topics(good[i], &err), 0);
	for (size_t i = 0; i < array_len(bad); i++) {
		if (event_bus_check_topics(bad[i], &err) != -EINVAL)
			fail_msg("\"%s\" was taken", bad[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_follower_hears_of_its_own),
		cmocka_unit_test(topics_that_do_not_exist_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
