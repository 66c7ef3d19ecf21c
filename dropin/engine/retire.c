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
#else
	static void *_Atomic kept[KEPT];
	static _Atomic unsigned int next;
	free(atomic_exchange(&kept[atomic_fetch_add(&next, 1) % KEPT], object));
#endif
}
