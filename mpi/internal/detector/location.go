package detector

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// internalPrefixes are the function prefixes that callerLine skips.
var internalPrefixes = [...]string{"runtime.", "github.com/softrnic/softrnic/internal/", "github.com/softrnic/softrnic/mpi.", "github.com/softrnic/softrnic/mpi/internal/"}

// callerLine returns the program's file, with its folder, and line that made a call, or "".
func callerLine(pcs []uintptr) string {
	if len(pcs) == 0 {
		return ""
	}
	frames := runtime.CallersFrames(pcs)
	for {
		f, more := frames.Next()
		inside := f.Function == ""
		for _, prefix := range internalPrefixes {
			inside = inside || strings.HasPrefix(f.Function, prefix)
		}
		if !inside {
			dir, file := path.Split(f.File)
			return fmt.Sprintf("%s:%d", path.Join(path.Base(dir), file), f.Line)
		}
		if !more {
			return ""
		}
	}
}
