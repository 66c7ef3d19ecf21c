/* A program without libibverbs that calls the plugin of its first argument. */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	int (*call)(void) = plugin ? (int (*)(void))dlsym(plugin, "plugin_call") : NULL;
	printf("%d\n", call ? call() >= 0 : -1);
	return 0;
}
