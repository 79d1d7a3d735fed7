/* SPDX-License-Identifier: Apache-2.0 */
/* How long a test waits for what must happen. It only ends what hangs: nothing here says how fast something is. */
#pragma once

#define DEADLINE_MS 60000
