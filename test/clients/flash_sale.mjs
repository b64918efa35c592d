// The flash sale of examples/flash-sale, with fewer buyers: each way sells what there is, no more and no less. A way that is
// wrong is found by its checks. Prints TAP.
//
// npm: pg graphile-worker@0.16

import assert from 'node:assert/strict';
import { copyFileSync } from 'node:fs';
import { check } from './lib/page.mjs';

// Beside the packages.
for (const file of ['sale.mjs', 'ways.mjs']) copyFileSync(`${process.env.ROOT}/examples/flash-sale/${file}`, file);
const { hold, fault } = await import(`${process.cwd()}/sale.mjs`);
const { ways, wrong } = await import(`${process.cwd()}/ways.mjs`);

const options = { buyers: 1000, items: 100, connections: 32, payment: 2 };

for (const [name, way] of Object.entries(ways)) {
    await check(`ESC-21: ${name} sells 100 of 100 to 1000 buyers`, async () => {
        const result = await hold(way, options);
        assert.equal(fault(result, options), undefined);
        assert.equal(result.sold, 100);
        assert.ok(result.changed > 0, 'some purchases were rolled back');
        assert.ok(result.looks > 0, 'and somebody looked meanwhile');
    });
}
await check('fewer buyers than pieces: all but those that change their minds', async () => {
    const few = { ...options, buyers: 50 };
    const result = await hold(ways.adjust, few);
    assert.deepEqual([result.sold, result.changed, result.left, result.wrong], [45, 5, 55, []]);
});
await check('a read and then a write sells too many, and is found out', async () => {
    assert.match(fault(await hold(wrong, options), options), /were sold|a look found/);
});
console.log(`1..${check.count}`);
