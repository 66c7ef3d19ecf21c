/* A program of TCP sockets, to run with librspreload: the client sends a megabyte and gets it back. Both print the
 * address of the other side, which tells the adapter of the peer from a socket of the kernel. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { total = 1 << 20 };

static unsigned char sent[total], received[total];

static void check(int ok, const char *operation)
{
	if (!ok) {
		perror(operation);
		exit(1);
	}
}

static void read_all(int s)
{
	for (size_t n = 0; n < total;) {
		struct pollfd p = { .fd = s, .events = POLLIN };
		check(poll(&p, 1, 20000) == 1, "poll");
		ssize_t got = recv(s, received + n, total - n, 0);
		check(got > 0, "recv");
		n += got;
	}
}

static void write_all(int s, const unsigned char *data)
{
	for (size_t n = 0; n < total;) {
		ssize_t put = write(s, data + n, total - n);
		check(put > 0, "write");
		n += put;
	}
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(atoi(argv[3])) };
	inet_pton(AF_INET, argv[2], &a.sin_addr);
	int s = socket(AF_INET, SOCK_STREAM, 0);
	check(s >= 0, "socket");
	if (strcmp(argv[1], "server") == 0) {
		int on = 1;
		check(setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0, "setsockopt");
		check(bind(s, (struct sockaddr *)&a, sizeof a) == 0, "bind");
		check(listen(s, 4) == 0, "listen");
		puts("listening");
		fflush(stdout);
		int c = accept(s, NULL, NULL);
		check(c >= 0, "accept");
		close(s);
		s = c;
		read_all(s);
		write_all(s, received);
	} else {
		for (int i = 0; i < total; i++)
			sent[i] = rand();
		check(connect(s, (struct sockaddr *)&a, sizeof a) == 0, "connect");
		write_all(s, sent);
		read_all(s);
		check(memcmp(sent, received, total) == 0, "compare");
	}
	socklen_t length = sizeof a;
	check(getpeername(s, (struct sockaddr *)&a, &length) == 0, "getpeername");
	char text[INET_ADDRSTRLEN];
	printf("peer %s\n", inet_ntop(AF_INET, &a.sin_addr, text, sizeof text));
	check(shutdown(s, SHUT_RDWR) == 0, "shutdown");
	close(s);
	return 0;
}
