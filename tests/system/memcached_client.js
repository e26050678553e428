/* memcached_client.js - the npm client "memcached" against the gateway.
 *
 * usage: memcached_client.js HOST:PORT    NODE_PATH names the folder with the client
 *
 * Ends with 0 if every answer was right.
 */
"use strict";
const assert = require("assert");
const { promisify } = require("util");
const Memcached = require("memcached");

const client = new Memcached(process.argv[2], { timeout: 60000, retries: 0 });
const ask = (name, ...args) => promisify(client[name]).apply(client, args);

async function refused(promise) {
	try {
		return await promise;
	} catch (e) {
		return "refused";
	}
}

async function main() {
	const big = "x".repeat(500000), names = [];

	await ask("flush");
	assert.equal(await ask("set", "a", "hello", 100), true);
	assert.equal(await ask("get", "a"), "hello");
	assert.equal(await ask("get", "absent"), undefined);
	assert.equal(await refused(ask("add", "a", "x", 0)), "refused");
	assert.equal(await refused(ask("replace", "none", "x", 0)), "refused");
	assert.equal(await ask("append", "a", " world"), true);
	assert.equal(await ask("prepend", "a", "> "), true);
	const { cas, a } = await ask("gets", "a");
	assert.equal(a, "> hello world");
	assert.equal(await ask("cas", "a", "new", cas, 0), true);
	assert.equal(await refused(ask("cas", "a", "old", cas, 0)), false);
	assert.equal(await ask("get", "a"), "new");
	await ask("set", "object", { b: [1, 2.5, null] }, 0);
	assert.deepEqual(await ask("get", "object"), { b: [1, 2.5, null] });
	await ask("set", "n", 5, 0);
	assert.equal(await ask("incr", "n", 3), 8);
	assert.equal(await ask("decr", "n", 100), 0);
	assert.equal(await ask("incr", "absent", 1), false);
	assert.equal(await ask("touch", "n", 100), true);
	await ask("set", "big", big, 0);
	assert.equal(await ask("get", "big"), big);
	for (let i = 0; i < 200; i++)
		names.push("many" + i);
	await Promise.all(names.map((n) => ask("set", n, n, 0)));
	const all = await ask("getMulti", names);
	for (const n of names)
		assert.equal(all[n], n);
	assert.equal(await ask("del", "a"), true);
	assert.equal(await ask("del", "a"), false);
	assert.match(String((await ask("version"))[0].version), /^1\.6/);
	client.end();
}

main().then(() => process.exit(0), (e) => { console.error(e); process.exit(1); });
