// Structures of destroyed objects.
#include "engine.h"

#include <stdlib.h>

enum { KEPT = 1024 };

// retire frees the structure of a destroyed object later, as one of the last KEPT ones. Calls with its pointer
// meanwhile find a handle of no object and fail with EINVAL, where the memory of others would be read otherwise.
void retire(void *object)
{
#if defined(__SANITIZE_ADDRESS__)
	free(object); // the sanitizer shall see the use of what the program has destroyed
	return;
#endif
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static void *kept[KEPT];
	static unsigned int next;
	pthread_mutex_lock(&mutex);
	void *oldest = kept[next];
	kept[next] = object;
	next = (next + 1) % KEPT;
	pthread_mutex_unlock(&mutex);
	free(oldest);
}
