/* example - writes the beginning of a volume, 16 I/Os at a time, makes it stable, reads it back.
 *
 *	cc -o example example.c $(pkg-config --cflags --libs xseg) && ./example SEGMENT VOLUME
 */
#include <stdio.h>
#include <string.h>
#include <xseg/volume.h>

enum { NR = 16, SIZE = 65536 };
static char out[NR][SIZE], in[NR][SIZE];

int main(int argc, char **argv)
{
	struct xseg_volume_params params = { 0 };
	struct xseg_io io[NR] = { 0 }, flush = { .op = XSEG_OP_FLUSH }, *done[NR];
	struct xseg_volume *volume = NULL;
	struct xseg_queue *queue = NULL;
	struct xseg_error err = { "" };
	int failed = 0;

	if (argc != 3) {
		fprintf(stderr, "example: name a segment and a volume\n");
		return 1;
	}
	params.segment = argv[1];
	params.volume = argv[2];
	if (xseg_volume_open(&params, &volume, &err) ||
	    xseg_queue_create(volume, NULL, &queue, &err)) {
		fprintf(stderr, "example: %s\n", err.text);
		return 1;
	}
	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < NR; i++) {
			memset(out[i], 'a' + i, SIZE);
			io[i] = (struct xseg_io){ .op = round ? XSEG_OP_READ : XSEG_OP_WRITE,
						  .buf = round ? in[i] : out[i],
						  .offset = (uint64_t)i * SIZE, .size = SIZE };
			failed |= xseg_queue_submit(queue, &io[i]);
		}
		while (xseg_queue_out(queue))
			for (uint32_t n = xseg_queue_wait(queue, done, NR, 1000000000); n-- > 0;)
				failed |= done[n]->result != SIZE;
		failed |= xseg_queue_run(queue, &flush) < 0;
	}
	xseg_queue_destroy(queue);
	xseg_volume_close(volume);
	if (failed)
		fprintf(stderr, "example: an I/O failed\n");
	else if (memcmp(in, out, sizeof(in)))
		fprintf(stderr, "example: what was read is not what was written\n");
	else
		return puts("all of it is there") < 0;
	return 1;
}
