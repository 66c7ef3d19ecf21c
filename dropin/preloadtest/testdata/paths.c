/* Prints the results of each function that takes a path, for the path of the first argument. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print(const char *name, int ok)
{
	printf("%s %s\n", name, ok ? "yes" : strerror(errno));
}

static void print_open(const char *name, int fd)
{
	char text[64] = "";
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	text[strcspn(text, "\n")] = 0;
	printf("%s %s\n", name, fd < 0 || n < 0 ? strerror(errno) : text);
}

static void print_file(const char *name, FILE *file)
{
	print_open(name, file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 0) : -1);
	if (file)
		fclose(file);
}

static void print_link(const char *name, char *text, ssize_t n)
{
	if (n >= 0)
		text[n] = 0;
	printf("%s %s\n", name, n < 0 ? strerror(errno) : text);
}

static int show_all(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static int show_all64(const struct dirent64 *entry)
{
	return entry->d_name[0] != '.';
}

static void print_files(const char *path)
{
	struct stat s;
	struct stat64 s64;
	struct statx sx;
	print("stat", stat(path, &s) == 0);
	print("stat64", stat64(path, &s64) == 0);
	print("lstat", lstat(path, &s) == 0);
	print("lstat64", lstat64(path, &s64) == 0);
	print("fstatat", fstatat(AT_FDCWD, path, &s, 0) == 0);
	print("fstatat64", fstatat64(AT_FDCWD, path, &s64, 0) == 0);
	print("statx", statx(AT_FDCWD, path, 0, STATX_TYPE, &sx) == 0);
	print("access", access(path, R_OK) == 0);
	print("faccessat", faccessat(AT_FDCWD, path, R_OK, 0) == 0);
	print_open("open", open(path, O_RDONLY));
	print_open("open64", open64(path, O_RDONLY));
	print_open("openat", openat(AT_FDCWD, path, O_RDONLY));
	print_open("openat64", openat64(AT_FDCWD, path, O_RDONLY));
	print_file("fopen", fopen(path, "r"));
	print_file("fopen64", fopen64(path, "r"));
}

static void print_links(const char *path)
{
	char text[512];
	print_link("readlink", text, readlink(path, text, sizeof text - 1));
	print_link("readlinkat", text, readlinkat(AT_FDCWD, path, text, sizeof text - 1));
	char *real = realpath(path, NULL);
	print("realpath", real && strstr(real, "/infiniband") != NULL);
	free(real);
	real = canonicalize_file_name(path);
	print("canonicalize_file_name", real && strstr(real, "/infiniband") != NULL);
	free(real);
}

static void print_directory(const char *path)
{
	DIR *dir = opendir(path);
	print("opendir", dir != NULL);
	for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
		if (show_all(entry))
			printf("opendir %s\n", entry->d_name);
	if (dir)
		closedir(dir);
	struct dirent **list;
	struct dirent64 **list64;
	int n = scandir(path, &list, show_all, alphasort);
	for (int i = 0; i < n; i++)
		printf("scandir %s\n", list[i]->d_name);
	n = scandir64(path, &list64, show_all64, alphasort64);
	for (int i = 0; i < n; i++)
		printf("scandir64 %s\n", list64[i]->d_name);
}

/* print_relative prints the results of relative paths, from /sys/class and from /sys. */
static void print_relative(const char *name)
{
	static const char *const dirs[] = {"/sys/class", "/sys"};
	for (int i = 0; i < 2; i++) {
		char path[256];
		snprintf(path, sizeof path, "%s%s", i ? "class/" : "", name);
		int dir = open(dirs[i], O_RDONLY | O_DIRECTORY);
		struct stat s;
		print("fstatat", fstatat(dir, path, &s, 0) == 0);
		print("faccessat", faccessat(dir, path, R_OK, 0) == 0);
		print_open("openat", openat(dir, path, O_RDONLY));
		if (chdir(dirs[i]) == 0) {
			print("stat", stat(path, &s) == 0);
			print_open("open", open(path, O_RDONLY));
		}
		close(dir);
	}
}

static void print_matches(const char *pattern)
{
	glob_t g;
	glob64_t g64;
	print("glob", glob(pattern, 0, NULL, &g) == 0);
	for (size_t i = 0; i < g.gl_pathc; i++)
		printf("glob %s\n", g.gl_pathv[i]);
	globfree(&g);
	print("glob64", glob64(pattern, GLOB_MARK, NULL, &g64) == 0);
	for (size_t i = 0; i < g64.gl_pathc; i++)
		printf("glob64 %s\n", g64.gl_pathv[i]);
	globfree64(&g64);
}

/* print_visit prints a path of a walk, its last name and its level. */
static int print_visit(const char *path, const struct stat *s, int kind, struct FTW *f)
{
	printf("nftw %s %s %d %d\n", path, path + f->base, f->level, kind == FTW_F && S_ISREG(s->st_mode));
	return 0;
}

static int print_visit64(const char *path, const struct stat64 *s, int kind, struct FTW *f)
{
	printf("nftw64 %s %s %d %d\n", path, path + f->base, f->level, kind == FTW_F && S_ISREG(s->st_mode));
	return 0;
}

static int print_inner64(const char *path, const struct stat64 *s, int kind)
{
	printf("ftw64 %s %d\n", path, kind == FTW_F && S_ISREG(s->st_mode));
	return kind == FTW_F ? 7 : 0;
}

/* print_outer walks a second time within the first walk. */
static int print_outer(const char *path, const struct stat *s, int kind)
{
	printf("ftw %s %d\n", path, kind == FTW_F && S_ISREG(s->st_mode));
	if (kind == FTW_D)
		printf("ftw64 %d\n", ftw64(path, print_inner64, 4));
	return 0;
}

static void print_walk(const char *path)
{
	print("nftw", nftw(path, print_visit, 4, 0) == 0);
	print("nftw64", nftw64(path, print_visit64, 4, FTW_DEPTH) == 0);
	print("ftw", ftw(path, print_outer, 4) == 0);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	if (strcmp(argv[1], "files") == 0)
		print_files(argv[2]);
	else if (strcmp(argv[1], "links") == 0)
		print_links(argv[2]);
	else if (strcmp(argv[1], "directory") == 0)
		print_directory(argv[2]);
	else if (strcmp(argv[1], "relative") == 0)
		print_relative(argv[2]);
	else if (strcmp(argv[1], "glob") == 0)
		print_matches(argv[2]);
	else if (strcmp(argv[1], "walk") == 0)
		print_walk(argv[2]);
	else if (strcmp(argv[1], "create") == 0) /* the mode of a new file arrives */
		print_open("open", open(argv[2], O_RDWR | O_CREAT | O_EXCL, 0640));
	return 0;
}
