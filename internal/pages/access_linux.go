package pages

import (
	"bytes"
	"os"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/softrnic/softrnic/internal/place"
)

// mapping is one line of /proc/self/maps.
type mapping struct {
	start, end         uint64 // [start, end)
	readable, writable bool
	file               bool
}

// checkAccess implements CheckAccess.
func checkAccess(mem []byte, write bool) *AccessError {
	find, known := queryMapping, true
	if !hasQuery() {
		var list mappings
		if list, known = readMappings(); !known {
			return nil
		}
		find = list.lookup
	}
	first := addressOf(mem)
	end := first + uint64(len(mem))
	for at := first; at < end; {
		m, mapped := find(at)
		switch {
		case !mapped:
			return &AccessError{at, ErrUnmapped}
		case !m.readable:
			return &AccessError{at, ErrNotReadable}
		case write && !m.writable:
			return &AccessError{at, ErrNotWritable}
		}
		at = min(m.end, end)
		if last := at - first; m.file && !place.Readable(mem[last-1:last]) {
			return &AccessError{at - 1, ErrBeyondFile}
		}
	}
	return nil
}

// procmapQuery is struct procmap_query of linux/fs.h.
type procmapQuery struct {
	size, flags, addr     uint64
	start, end            uint64
	vmaFlags, pageSize    uint64
	offset, inode         uint64
	devMajor, devMinor    uint32
	nameSize, buildIDSize uint32
	nameAddr, buildIDAddr uint64
}

// Of PROCMAP_QUERY, linux/fs.h.
const (
	procmapRequest  = 0xc0686611 // _IOWR('f', 17, struct procmap_query)
	procmapReadable = 1 << 0
	procmapWritable = 1 << 1
)

// mapsFile returns the descriptor of /proc/self/maps, open for queries until
// the process ends, or -1.
var mapsFile = sync.OnceValue(func() int {
	fd, err := unix.Open("/proc/self/maps", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return fd
})

// hasQuery reports whether the kernel supports queries, by a query for a mapped
// address.
var hasQuery = sync.OnceValue(func() bool {
	known := make([]byte, 1)
	_, ok := queryMapping(addressOf(known))
	return ok
})

// queryMapping queries the kernel for the mapping at an address.
func queryMapping(at uint64) (m mapping, mapped bool) {
	q := procmapQuery{addr: at}
	q.size = uint64(unsafe.Sizeof(q))
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(mapsFile()), procmapRequest, uintptr(unsafe.Pointer(&q)))
	if errno != 0 {
		return mapping{}, false
	}
	return mapping{q.start, q.end, q.vmaFlags&procmapReadable != 0, q.vmaFlags&procmapWritable != 0, q.inode != 0}, true
}

// mappings are the mappings of the process, ordered by address.
type mappings []mapping

// readMappings reads /proc/self/maps; ok reports success.
func readMappings() (list mappings, ok bool) {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return nil, false
	}
	for line := range bytes.Lines(text) {
		if m, ok := parseMapping(line); ok {
			list = append(list, m)
		}
	}
	return list, len(list) > 0
}

// parseMapping parses a line such as (proc_pid_maps(5))
//
//	7f3a1c000000-7f3a1c021000 rw-p 00000000 00:00 0
func parseMapping(line []byte) (m mapping, ok bool) {
	f := bytes.Fields(line)
	if len(f) < 5 || len(f[1]) < 2 {
		return mapping{}, false
	}
	from, to, _ := bytes.Cut(f[0], []byte("-"))
	start, err1 := strconv.ParseUint(string(from), 16, 64)
	end, err2 := strconv.ParseUint(string(to), 16, 64)
	return mapping{start, end, f[1][0] == 'r', f[1][1] == 'w', string(f[4]) != "0"}, err1 == nil && err2 == nil
}

// lookup returns the mapping at an address.
func (list mappings) lookup(at uint64) (m mapping, mapped bool) {
	for _, m := range list {
		if m.start <= at && at < m.end {
			return m, true
		}
	}
	return mapping{}, false
}
