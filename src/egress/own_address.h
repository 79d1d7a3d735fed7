/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which addresses belong to this machine, public ones too. A sandbox must not reach them: its
 * connection would come from inside, past any firewall.
 */
#pragma once

#include "model/address.h"

bool own_address_is(struct address address);
