/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/proof.h"

#include "wire/pack.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define MAGIC	     "SANDLOT1"
#define MAGIC_LEN    8
#define PROOF_DAEMON "sandlot daemon to agent"
#define PROOF_AGENT  "sandlot agent to daemon"

static int fill(void *data, size_t len)
{
	ssize_t n;

	do
		n = getrandom(data, len, 0);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

/* Takes as long wherever they differ. */
static bool is_equal(const uint8_t *one, const uint8_t *other, size_t len)
{
	volatile uint8_t difference = 0;

	for (size_t i = 0; i < len; i++)
		difference |= one[i] ^ other[i];
	return difference == 0;
}

/* The words end with their NUL, so that none is the beginning of another. */
static void make_mac(const struct proof_secret *secret, const char *words, const uint8_t *greeting,
	const uint8_t *claim, uint8_t ret_mac[SHA256_LEN])
{
	struct sha256_hmac hmac;

	sha256_hmac_init(&hmac, secret->bytes, sizeof(secret->bytes));
	sha256_hmac_add(&hmac, words, strlen(words) + 1);
	sha256_hmac_add(&hmac, greeting, PROOF_GREETING_LEN);
	sha256_hmac_add(&hmac, claim, PROOF_CLAIM_BODY_LEN);
	sha256_hmac_end(&hmac, ret_mac);
}

int proof_secret_new(struct proof_secret *ret_secret)
{
	return fill(ret_secret->bytes, sizeof(ret_secret->bytes));
}

void proof_secret_print(const struct proof_secret *secret, char text[PROOF_SECRET_TEXT])
{
	for (size_t i = 0; i < PROOF_SECRET_LEN; i++)
		snprintf(text + 2 * i, 3, "%02x", secret->bytes[i]);
}

static int digit(char c)
{
	static const char digits[] = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	return at ? (int)(at - digits) : -1;
}

int proof_secret_parse(const char *text, struct proof_secret *ret_secret)
{
	struct proof_secret secret;

	if (strlen(text) != PROOF_SECRET_TEXT - 1)
		return -EINVAL;
	for (size_t i = 0; i < PROOF_SECRET_LEN; i++) {
		int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		secret.bytes[i] = (uint8_t)(high << 4 | low);
	}
	*ret_secret = secret;
	explicit_bzero(&secret, sizeof(secret));
	return 0;
}

int proof_greet(uint8_t ret_greeting[PROOF_GREETING_LEN])
{
	memcpy(ret_greeting, MAGIC, MAGIC_LEN);
	return fill(ret_greeting + MAGIC_LEN, PROOF_GREETING_LEN - MAGIC_LEN);
}

/* What the fields of a claim may be; only a daemon that knows the secret gets here. */
static int parse_claim(const uint8_t *data, struct proof_claim *ret_claim)
{
	struct unpack in = UNPACK_INIT(data, PROOF_CLAIM_BODY_LEN);
	uint8_t purpose = unpack_u8(&in), zero = unpack_u8(&in);
	uint16_t port = unpack_u16(&in);
	uint32_t wait_ms = unpack_u32(&in);

	if (purpose < PROOF_LINK || purpose > PROOF_DIAL || zero != 0)
		return -EPROTO;
	if ((purpose == PROOF_DIAL) != (port != 0) || (purpose != PROOF_DIAL && wait_ms != 0))
		return -EPROTO;
	*ret_claim = (struct proof_claim){purpose, port, wait_ms};
	return 0;
}

int proof_check_claim(const struct proof_secret *secret, const uint8_t greeting[PROOF_GREETING_LEN],
	const uint8_t claim[PROOF_CLAIM_LEN], struct proof_claim *ret_claim)
{
	uint8_t mac[SHA256_LEN];

	make_mac(secret, PROOF_DAEMON, greeting, claim, mac);
	if (!is_equal(mac, claim + PROOF_CLAIM_BODY_LEN, sizeof(mac)))
		return -EACCES;
	return parse_claim(claim, ret_claim);
}

void proof_make_answer(const struct proof_secret *secret,
	const uint8_t greeting[PROOF_GREETING_LEN], const uint8_t claim[PROOF_CLAIM_LEN],
	uint8_t ret_answer[PROOF_ANSWER_LEN])
{
	make_mac(secret, PROOF_AGENT, greeting, claim, ret_answer);
}

int proof_make_claim(const struct proof_secret *secret, const uint8_t greeting[PROOF_GREETING_LEN],
	const struct proof_claim *claim, uint8_t ret_claim[PROOF_CLAIM_LEN])
{
	struct buf body = BUF_INIT(PROOF_CLAIM_BODY_LEN);
	uint8_t nonce[32];
	int r = fill(nonce, sizeof(nonce));

	if (r == 0 && memcmp(greeting, MAGIC, MAGIC_LEN) != 0)
		r = -EPROTO;
	if (r < 0)
		return r;
	pack_u8(&body, (uint8_t)claim->purpose);
	pack_u8(&body, 0);
	pack_u16(&body, claim->port);
	pack_u32(&body, claim->wait_ms);
	buf_append(&body, nonce, sizeof(nonce));
	memcpy(ret_claim, body.data, PROOF_CLAIM_BODY_LEN);
	buf_fini(&body);
	make_mac(secret, PROOF_DAEMON, greeting, ret_claim, ret_claim + PROOF_CLAIM_BODY_LEN);
	return 0;
}

int proof_check_answer(const struct proof_secret *secret,
	const uint8_t greeting[PROOF_GREETING_LEN], const uint8_t claim[PROOF_CLAIM_LEN],
	const uint8_t answer[PROOF_ANSWER_LEN])
{
	uint8_t mac[SHA256_LEN];

	make_mac(secret, PROOF_AGENT, greeting, claim, mac);
	return is_equal(mac, answer, sizeof(mac)) ? 0 : -EACCES;
}
