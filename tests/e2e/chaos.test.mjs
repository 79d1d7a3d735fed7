// SPDX-License-Identifier: Apache-2.0
// The short form of `make chaos`: the same operations and faults, always by the same seed.
import { test } from 'node:test';

import { chaos } from '../chaos/world.mjs';

test('random operations under kills and stops of daemon, keeper and agents and a full disk lose nothing that was acknowledged and leave nothing', () => chaos({ seed: 12, seconds: 12 }));
