/* Declarations that the files of the preloaded library share. */
#ifndef SOFTRNIC_PRELOAD_H
#define SOFTRNIC_PRELOAD_H

#include <stddef.h>

#define PUBLIC __attribute__((visibility("default")))

/* softrnic_resolve returns the function that trampoline `index` jumps to, and stores it in the trampoline's slot. The
 * assembly calls it with the argument registers saved. It leaves errno alone and ends the program if no library has the
 * function. */
void *softrnic_resolve(unsigned index);

/* softrnic_engine returns the handle of the engine, which it loads at the first call, or NULL if SOFTRNIC_DROPIN=off or
 * the engine cannot be loaded. */
void *softrnic_engine(void);

/* softrnic_has_engine reports whether the engine is loaded in this process, or is being loaded. */
int softrnic_has_engine(void);

/* softrnic_is_engine reports whether a file is the engine. */
int softrnic_is_engine(const char *file);

/* softrnic_is_off reports whether SOFTRNIC_DROPIN=off, in any case of letters: the installed libraries are used. */
int softrnic_is_off(void);

/* softrnic_installed returns a function of the installed libraries, which it loads, or NULL. */
void *softrnic_installed(const char *function);

/* softrnic_beside stores the path of a file in the directory of the preloaded library. The format has %s for name, once
 * or twice. It returns -1 if the path is too long. */
int softrnic_beside(char *path, size_t size, const char *format, const char *name);

#endif
