/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses are those of this machine, also public ones: what listens there would be reached from
 * inside, past whatever firewall keeps others from it.
 */
#pragma once

#include "model/address.h"

bool own_address_is(struct address address);
