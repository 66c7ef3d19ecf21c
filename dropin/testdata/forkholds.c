// A grandchild by fork that outlives its parent, which had a device and has ended (argument "ends") or was killed. The
// device can be opened again at the same address, and the descriptors of the grandchild that are no sockets of the
// device are as they were.
#include "pair.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

// bind_socket binds a socket of the program.
static int bind_socket(int family, int type, const void *address, socklen_t length)
{
	int fd = socket(family, type, 0);
	CHECK(fd >= 0 && !bind(fd, address, length));
	return fd;
}

int main(int argc, char **argv)
{
	bool killed = argc > 1 && !strcmp(argv[1], "killed");
	int hold[2], report[2];
	CHECK(!pipe(hold) && !pipe(report));
	alarm(60);
	pid_t child = fork();
	CHECK(child >= 0);
	if (!child) {
		struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = ""}; // any abstract name
		int own[] = {
			bind_socket(AF_INET, SOCK_DGRAM, &in, sizeof in),
			bind_socket(AF_INET, SOCK_STREAM, &in, sizeof in),
			bind_socket(AF_UNIX, SOCK_STREAM, &un, sizeof un.sun_family),
		};
		CHECK(open_first());
		pid_t grandchild = fork();
		CHECK(grandchild >= 0);
		if (!grandchild) {
			char b = 1;
			for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
				b = b && !close(own[i]);
			close(hold[1]);
			CHECK(write(report[1], &b, 1) == 1);
			_exit(read(hold[0], &b, 1)); // until main ends
		}
		if (killed)
			raise(SIGKILL);
		exit(0); // with the handlers of atexit
	}
	int status;
	char b = 0;
	close(hold[0]);
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(killed ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(read(report[0], &b, 1) == 1 && b);
	CHECK(!ibv_close_device(open_first()));
	puts("ok");
	return 0;
}
