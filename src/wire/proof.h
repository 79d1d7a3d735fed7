/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How each connection to an agent that listens begins (agent/link/listener.h). Both ends prove that
 * they know the secret of the sandbox, which does not cross it, and the daemon says what the
 * connection is for:
 *
 *   agent   greeting  8 bytes "SANDLOT1", 32 random bytes
 *   daemon  claim     u8 enum proof_purpose, u8 0, u16 port, u32 wait ms, 32 random bytes, MAC
 *   agent   answer    MAC
 *
 * A MAC is the HMAC-SHA256, with the secret, of the words PROOF_DAEMON or PROOF_AGENT, the greeting
 * and the claim without its MAC. So neither can be sent again on another connection, be sent back
 * to its sender, or change the purpose. An agent that does not accept a claim closes without a
 * word. All lengths are fixed, and no byte beyond them is read: what follows is a stream that
 * wire/agent.h describes. It is not encrypted.
 */
#pragma once

#include "base/mem.h"
#include "base/sha256.h"

#include <stdint.h>

#define PROOF_SECRET_LEN     32
#define PROOF_SECRET_TEXT    (2 * PROOF_SECRET_LEN + 1) /* in hexadecimal digits, with NUL */
#define PROOF_GREETING_LEN   40
#define PROOF_CLAIM_BODY_LEN 40
#define PROOF_CLAIM_LEN	     (PROOF_CLAIM_BODY_LEN + SHA256_LEN)
#define PROOF_ANSWER_LEN     SHA256_LEN

enum proof_purpose {
	PROOF_LINK = 1, /* replaces the link that there is */
	PROOF_CHANNEL,	/* the daemon sends its first frame next */
	PROOF_DIAL, /* the agent says u32 errnum, then the bytes of a port on its loopback follow */
};

struct proof_secret {
	uint8_t bytes[PROOF_SECRET_LEN];
};

struct proof_claim {
	enum proof_purpose purpose;
	uint16_t port;	  /* of DIAL; else 0 */
	uint32_t wait_ms; /* of DIAL: how long what listens may take; else 0 */
};

/* A new one, of random bytes. 0 or -errno. */
int proof_secret_new(struct proof_secret *ret_secret) must_check;
void proof_secret_print(const struct proof_secret *secret, char text[PROOF_SECRET_TEXT]);
/* 0, or -EINVAL for anything but 64 digits. */
int proof_secret_parse(const char *text, struct proof_secret *ret_secret) must_check;

/* --- the agent's part --- */

/* Makes the greeting of a new connection. 0 or -errno. */
int proof_greet(uint8_t ret_greeting[PROOF_GREETING_LEN]) must_check;

/* 0; -EACCES if it was not made with this secret for this greeting, -EPROTO if it says nonsense. */
int proof_check_claim(const struct proof_secret *secret, const uint8_t greeting[PROOF_GREETING_LEN],
	const uint8_t claim[PROOF_CLAIM_LEN], struct proof_claim *ret_claim) must_check;

/* Makes the answer to a claim that was accepted. */
void proof_make_answer(const struct proof_secret *secret,
	const uint8_t greeting[PROOF_GREETING_LEN], const uint8_t claim[PROOF_CLAIM_LEN],
	uint8_t ret_answer[PROOF_ANSWER_LEN]);

/* --- the daemon's --- */

/* 0, -EPROTO if the greeting is no agent's, or -errno. */
int proof_make_claim(const struct proof_secret *secret, const uint8_t greeting[PROOF_GREETING_LEN],
	const struct proof_claim *claim, uint8_t ret_claim[PROOF_CLAIM_LEN]) must_check;

/* 0, or -EACCES if the other end does not know the secret. */
int proof_check_answer(const struct proof_secret *secret,
	const uint8_t greeting[PROOF_GREETING_LEN], const uint8_t claim[PROOF_CLAIM_LEN],
	const uint8_t answer[PROOF_ANSWER_LEN]) must_check;
