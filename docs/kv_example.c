/* kv_example - puts values into a store of an xseg segment, 16 at a time, changes one if nobody
 * else has, makes all stable, and reads them back: some by copy, and one where the cache has it.
 * Then a value of 3 MB goes in and out by a stream, 10,000 bytes at a time.
 *
 *	cc -o kv_example kv_example.c $(pkg-config --cflags --libs xseg)
 *	./kv_example SEGMENT [KVD]
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <xseg/kv.h>

enum { NR = 16, SIZE = 10000 };
static char key[NR][16], out[NR][SIZE], in[NR][SIZE];

/* A put or a get of each key, all at the same time. */
static int do_all(struct xseg_kv_queue *queue, enum xseg_kv_op op, char data[NR][SIZE])
{
	struct xseg_kv_io io[NR] = { 0 }, *done[NR];
	int failed = 0;

	for (int i = 0; i < NR; i++) {
		io[i].op = op;
		io[i].item.key = key[i];
		io[i].item.key_bytes = (uint32_t)strlen(key[i]);
		io[i].item.value = data[i];
		io[i].item.value_bytes = SIZE;
		failed |= xseg_kv_submit(queue, &io[i]);
	}
	while (xseg_kv_out(queue))
		for (uint32_t n = xseg_kv_wait(queue, done, NR, 1000000000); n-- > 0;)
			failed |= done[n]->result != (op == XSEG_KV_GET ? SIZE : 0);
	return failed;
}

/* Puts a new value, unless the key was changed since it was read. */
static int change_one(struct xseg_kv_queue *queue)
{
	struct xseg_kv_io io = { .op = XSEG_KV_GET };

	io.item.key = key[3];
	io.item.key_bytes = (uint32_t)strlen(key[3]);
	io.item.value = in[3];
	io.item.value_bytes = SIZE;
	if (xseg_kv_run(queue, &io) != SIZE)
		return 1;
	out[3][0] = 'X';
	io.op = XSEG_KV_PUT;
	io.item.value = out[3];
	io.item.condition = XSEG_KV_IF_VERSION;	/* io.item.version is the one that was read */
	return xseg_kv_run(queue, &io) != 0;
}

/* Compares a value with no copy of it. */
static int look_at_one(struct xseg_kv_queue *queue)
{
	struct xseg_kv_io io = { .op = XSEG_KV_GET, .flags = XSEG_KV_LOAN };
	struct iovec piece[SIZE / 4096 + 2];
	size_t at = 0;
	int failed = 0;

	io.item.key = key[5];
	io.item.key_bytes = (uint32_t)strlen(key[5]);
	if (xseg_kv_run(queue, &io) != SIZE)
		return 1;
	for (uint32_t i = 0, nr = xseg_kv_data(queue, &io, piece, SIZE / 4096 + 2); i < nr; i++) {
		failed |= memcmp(out[5] + at, piece[i].iov_base, piece[i].iov_len);
		at += piece[i].iov_len;
	}
	xseg_kv_release(queue, &io);
	return failed || at != SIZE;
}

/* Puts a value whose length is not known before, and reads it from its end to its begin. */
static int stream_one(struct xseg_kv_queue *queue)
{
	struct xseg_kv_item item = { .key = "example-large", .key_bytes = 13,
				     .value_bytes = XSEG_KV_UNKNOWN };
	struct xseg_kv_stream *stream;
	int failed = 0;

	if (xseg_kv_put_begin(queue, &item, 0, &stream))
		return 1;
	for (int i = 0; i < 300; i++)
		failed |= xseg_kv_put_part(stream, out[i % NR], SIZE);
	failed |= xseg_kv_put_commit(stream, NULL);
	if (failed || xseg_kv_get_open(queue, &item, 0, &stream))
		return 1;
	failed |= item.value_bytes != 300 * SIZE;
	for (int i = 300; i-- > 0;) {
		failed |= xseg_kv_get_piece(stream, (uint64_t)i * SIZE, in[0], SIZE) != SIZE;
		failed |= memcmp(in[0], out[i % NR], SIZE);
	}
	xseg_kv_get_close(stream);
	return failed | xseg_kv_delete(queue, item.key, item.key_bytes);
}

static int run(struct xseg_kv_queue *queue)
{
	int failed = 0;

	for (int i = 0; i < NR; i++) {
		snprintf(key[i], sizeof(key[i]), "example-%d", i);
		memset(out[i], 'a' + i, SIZE);
	}
	failed |= do_all(queue, XSEG_KV_PUT, out);
	failed |= change_one(queue);
	failed |= xseg_kv_flush(queue);
	failed |= do_all(queue, XSEG_KV_GET, in);
	failed |= memcmp(in, out, sizeof(in));
	failed |= look_at_one(queue);
	failed |= stream_one(queue);
	for (int i = 0; i < NR; i++)
		failed |= xseg_kv_delete(queue, key[i], (uint32_t)strlen(key[i]));
	failed |= xseg_kv_exists(queue, key[0], (uint32_t)strlen(key[0])) != -ENOENT;
	return failed;
}

int main(int argc, char **argv)
{
	struct xseg_kv_params params = { 0 };
	struct xseg_kv_queue *queue = NULL;
	struct xseg_kv *store = NULL;
	struct xseg_error err = { "" };
	int failed;

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "kv_example: name a segment, and a kvd if there are several\n");
		return 1;
	}
	params.segment = argv[1];
	params.kvd = argc == 3 ? argv[2] : NULL;
	if (xseg_kv_open(&params, &store, &err) ||
	    xseg_kv_queue_create(store, NULL, &queue, &err)) {
		fprintf(stderr, "kv_example: %s\n", err.text);
		return 1;
	}
	failed = run(queue);
	xseg_kv_queue_destroy(queue);
	xseg_kv_close(store);
	if (!failed)
		return puts("all values are there") < 0;
	fprintf(stderr, "kv_example: an operation failed, or a value is not what was put\n");
	return 1;
}
