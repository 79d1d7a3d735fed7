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

struct story {
	char text[512];
	unsigned ends;
};

static void listen(void *arg, const struct event *event)
{
	struct story *story = arg;
	size_t len = strlen(story->text);

	if (!event)
		story->ends++;
	else
		snprintf(story->text + len, sizeof(story->text) - len, "%s:%llu ", event->type,
			(unsigned long long)event->sequence);
}

/* What one hears who comes back. */
static const char *come_back(struct event_bus *bus, const char *topics, uint64_t after)
{
	static struct story story;
	struct event_filter filter = {.owner = &alice,
		.topics = topics,
		.greeting = "{}",
		.resumes = true,
		.after = after};

	story = (struct story){0};
	event_bus_leave(bus, event_bus_follow(bus, &filter, listen, &story));
	assert_int_equal(story.ends, 1);
	return story.text;
}

static void who_comes_back_goes_on_where_they_were(void **state)
{
	struct event_bus *bus = event_bus_new(10);

	(void)state;
	event_bus_publish(bus, &alice, "a", "sandbox.running", "{}");
	event_bus_publish(bus, &bob, "b", "sandbox.running", "{}");
	event_bus_publish(bus, &alice, "a", "stats.sample", "{}");
	event_bus_publish_in(bus, &alice, "a", "x", "execution.failed", "{}");
	event_bus_publish(bus, &alice, "a", "process.started", "{}");
	assert_string_equal(
		come_back(bus, NULL, 10), "following:10 sandbox.running:11 execution.failed:14 ");
	assert_string_equal(
		come_back(bus, "process,stats", 11), "following:11 process.started:15 ");
	assert_string_equal(come_back(bus, NULL, 15), "following:15 ");
	assert_string_equal(come_back(bus, NULL, 9),
		"following:9 missed:0 sandbox.running:11 execution.failed:14 ");
	assert_string_equal(come_back(bus, NULL, 99), "following:99 missed:0 ");
	event_bus_free(bus);
}

static void what_is_kept_is_bounded(void **state)
{
	struct event_bus *bus = event_bus_new(0);
	auto_free char *large = mem_new((300u << 10) + 1), *huge = mem_new((2u << 20) + 1);

	(void)state;
	memset(large, 'x', 300u << 10);
	memset(huge, 'x', 2u << 20);
	for (int i = 0; i < 5000; i++)
		event_bus_publish(bus, &bob, "b", "sandbox.running", "{}");
	event_bus_publish(bus, &alice, "a", "sandbox.stopped", "{}");
	assert_string_equal(come_back(bus, NULL, 4999), "following:4999 sandbox.stopped:5001 ");
	assert_string_equal(come_back(bus, NULL, 1), "following:1 missed:0 sandbox.stopped:5001 ");
	for (int i = 0; i < 4; i++)
		event_bus_publish(bus, &alice, "a", "sandbox.error", large);
	assert_string_equal(come_back(bus, NULL, 5000),
		"following:5000 missed:0 sandbox.error:5003 "
		"sandbox.error:5004 sandbox.error:5005 ");
	event_bus_publish(bus, &alice, "a", "sandbox.error", huge);
	assert_string_equal(come_back(bus, NULL, 5005), "following:5005 missed:0 ");
	assert_string_equal(come_back(bus, NULL, 5006), "following:5006 ");
	event_bus_free(bus);
}

static void some_topics_come_only_by_their_name(void **state)
{
	struct event_bus *bus = event_bus_new(0);
	struct heard all = {0}, named = {0}, inside = {0};
	struct event_follower *followers[] = {follow(bus, &alice, NULL, NULL, &all),
		follow(bus, &alice, "a", "stats,execution", &named),
		follow(bus, &alice, "a", NULL, &inside)};

	(void)state;
	assert_true(event_bus_is_followed(bus, NULL, "stats"));
	assert_true(event_bus_is_followed(bus, &alice, "stats"));
	assert_false(event_bus_is_followed(bus, &bob, "stats"));
	assert_false(event_bus_is_followed(bus, NULL, "process"));
	event_bus_publish(bus, &alice, "a", "stats.sample", "{}");
	event_bus_publish_in(bus, &alice, "a", "x", "execution.failed", "{}");
	event_bus_publish_in(bus, &alice, "b", "y", "execution.failed", "{}");
	assert_string_equal(all.text, "execution.failed/x execution.failed/y ");
	assert_string_equal(named.text, "stats.sample/a execution.failed/x ");
	assert_string_equal(inside.text, "execution.failed/x ");
	for (size_t i = 0; i < array_len(followers); i++)
		event_bus_leave(bus, followers[i]);
	event_bus_free(bus);
}

static void topics_that_do_not_exist_are_refused(void **state)
{
	const char *const good[] = {"sandbox", "job", "sandbox,start,port,network,job"};
	const char *const bad[] = {"", ",", "sandboxes", "sand", "job,", ",job", "job,,port",
		"job ",
		"job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,"
		"job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,job,"
		"job,job,job,job,job,job,job"};
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
		cmocka_unit_test(who_comes_back_goes_on_where_they_were),
		cmocka_unit_test(what_is_kept_is_bounded),
		cmocka_unit_test(some_topics_come_only_by_their_name),
		cmocka_unit_test(topics_that_do_not_exist_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
