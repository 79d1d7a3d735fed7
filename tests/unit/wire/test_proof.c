/* SPDX-License-Identifier: Apache-2.0 */
/* The proofs at the beginning of a connection, without a connection. */
#include "wire/proof.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

struct meeting {
	struct proof_secret secret;
	uint8_t greeting[PROOF_GREETING_LEN];
	uint8_t claim[PROOF_CLAIM_LEN];
	uint8_t answer[PROOF_ANSWER_LEN];
};

static const struct proof_claim link_claim = {.purpose = PROOF_LINK};

static struct meeting meet(const struct proof_claim *claim)
{
	struct meeting meeting;

	assert_int_equal(proof_secret_new(&meeting.secret), 0);
	assert_int_equal(proof_greet(meeting.greeting), 0);
	assert_int_equal(
		proof_make_claim(&meeting.secret, meeting.greeting, claim, meeting.claim), 0);
	proof_make_answer(&meeting.secret, meeting.greeting, meeting.claim, meeting.answer);
	return meeting;
}

static int check(const struct meeting *meeting)
{
	struct proof_claim claim;

	return proof_check_claim(&meeting->secret, meeting->greeting, meeting->claim, &claim);
}

static int check_answer(const struct meeting *meeting)
{
	return proof_check_answer(
		&meeting->secret, meeting->greeting, meeting->claim, meeting->answer);
}

static void both_ends_with_the_secret_believe_each_other(void **state)
{
	const struct proof_claim dial = {PROOF_DIAL, 8080, 1234};
	struct meeting meeting = meet(&dial);
	struct proof_claim claim;

	(void)state;
	assert_int_equal(
		proof_check_claim(&meeting.secret, meeting.greeting, meeting.claim, &claim), 0);
	assert_int_equal(claim.purpose, PROOF_DIAL);
	assert_int_equal(claim.port, 8080);
	assert_int_equal(claim.wait_ms, 1234);
	assert_int_equal(check_answer(&meeting), 0);
}

static void no_bit_of_it_can_be_changed(void **state)
{
	struct meeting meeting = meet(&link_claim);

	(void)state;
	for (size_t i = 0; i < 8 * sizeof(meeting.claim); i++) {
		meeting.claim[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(check(&meeting), -EACCES);
		meeting.claim[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t i = 0; i < 8 * sizeof(meeting.greeting); i++) {
		meeting.greeting[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(check(&meeting), -EACCES);
		assert_int_equal(check_answer(&meeting), -EACCES);
		meeting.greeting[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t i = 0; i < 8 * sizeof(meeting.secret); i++) {
		meeting.secret.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(check(&meeting), -EACCES);
		assert_int_equal(check_answer(&meeting), -EACCES);
		meeting.secret.bytes[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	for (size_t i = 0; i < 8 * sizeof(meeting.answer); i++) {
		meeting.answer[i / 8] ^= (uint8_t)(1 << i % 8);
		assert_int_equal(check_answer(&meeting), -EACCES);
		meeting.answer[i / 8] ^= (uint8_t)(1 << i % 8);
	}
	assert_int_equal(check(&meeting), 0);
	assert_int_equal(check_answer(&meeting), 0);
}

/* An agent's proof is none of a daemon, nor the other way: nobody can send back what it got. */
static void a_proof_sent_back_proves_nothing(void **state)
{
	struct meeting meeting = meet(&link_claim);
	uint8_t mac[SHA256_LEN];

	(void)state;
	memcpy(mac, meeting.claim + PROOF_CLAIM_BODY_LEN, sizeof(mac));
	memcpy(meeting.claim + PROOF_CLAIM_BODY_LEN, meeting.answer, sizeof(mac));
	memcpy(meeting.answer, mac, sizeof(mac));
	assert_int_equal(check(&meeting), -EACCES);
	assert_int_equal(check_answer(&meeting), -EACCES);
}

static void nothing_is_the_same_twice(void **state)
{
	struct meeting first = meet(&link_claim), second;

	(void)state;
	second = first;
	assert_int_equal(proof_greet(second.greeting), 0);
	assert_memory_not_equal(first.greeting, second.greeting, sizeof(first.greeting));
	/* Heard on another connection: */
	assert_int_equal(check(&second), -EACCES);
	assert_int_equal(check_answer(&second), -EACCES);
	/* and an agent that greets as before gets another claim. */
	assert_int_equal(
		proof_make_claim(&first.secret, first.greeting, &link_claim, second.claim), 0);
	assert_memory_not_equal(first.claim, second.claim, sizeof(first.claim));
}

static void a_claim_that_makes_no_sense_is_refused(void **state)
{
	static const struct proof_claim nonsense[] = {{0, 0, 0}, {4, 0, 0}, {255, 0, 0},
		{PROOF_DIAL, 0, 0}, {PROOF_LINK, 1, 0}, {PROOF_CHANNEL, 0, 1}};
	struct meeting meeting;

	(void)state;
	for (size_t i = 0; i < array_len(nonsense); i++) {
		meeting = meet(&nonsense[i]);
		assert_int_equal(check(&meeting), -EPROTO);
	}
	/* Nothing is claimed from what is no agent. */
	memset(meeting.greeting, 'H', sizeof(meeting.greeting));
	assert_int_equal(
		proof_make_claim(&meeting.secret, meeting.greeting, &link_claim, meeting.claim),
		-EPROTO);
}

static void a_secret_is_64_digits(void **state)
{
	char text[PROOF_SECRET_TEXT + 1] = "";
	struct proof_secret secret, same;

	(void)state;
	assert_int_equal(proof_secret_new(&secret), 0);
	proof_secret_print(&secret, text);
	assert_int_equal(proof_secret_parse(text, &same), 0);
	assert_memory_equal(&secret, &same, sizeof(secret));
	text[64] = '0';
	assert_int_equal(proof_secret_parse(text, &same), -EINVAL);
	text[63] = '\0';
	assert_int_equal(proof_secret_parse(text, &same), -EINVAL);
	text[63] = 'A';
	text[64] = '\0';
	assert_int_equal(proof_secret_parse(text, &same), -EINVAL);
	assert_int_equal(proof_secret_parse("", &same), -EINVAL);
	assert_memory_equal(&secret, &same, sizeof(secret));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_with_the_secret_believe_each_other),
		cmocka_unit_test(no_bit_of_it_can_be_changed),
		cmocka_unit_test(a_proof_sent_back_proves_nothing),
		cmocka_unit_test(nothing_is_the_same_twice),
		cmocka_unit_test(a_claim_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_secret_is_64_digits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
