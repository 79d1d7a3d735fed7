/* SPDX-License-Identifier: Apache-2.0 */
/* Where a browser is signed in by a link with a ticket for that path: /login?code=<ticket>. */
#pragma once

#define LOGIN_PATH	   "/login"
#define LOGIN_LINK_LIFE_MS (15 * 60000) /* of the link that the daemon prints when it starts */
