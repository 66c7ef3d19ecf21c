package main

// #include <string.h>
import "C"

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"github.com/softrnic/softrnic/verbs"
)

// Programs look beside libibverbs at /sys/class/infiniband (UCX, pyverbs) and at
// /dev/infiniband. The preloaded library redirects these paths to a directory of this process,
// which is made when they are asked for first.
var paths struct {
	once sync.Once
	root string
}

const pathsPrefix = "softrnic-sys-"

//export go_paths_root
func go_paths_root(root *C.char, size C.size_t) {
	defer reportPanic()
	paths.once.Do(func() {
		removeStalePaths()
		dir, err := os.MkdirTemp("", pathsPrefix+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			return
		}
		for i, d := range devices {
			if err := d.writePaths(dir, i); err != nil {
				fmt.Fprintf(os.Stderr, "softrnic: %s: describe device: %v\n", dir, err)
			}
		}
		paths.root = dir
	})
	out := unsafe.Slice((*byte)(unsafe.Pointer(root)), int(size))
	if len(paths.root) < len(out) {
		copy(out, paths.root+"\x00")
	}
}

// writePaths describes a device as the kernel does in /sys/class.
func (d *device) writePaths(dir string, index int) error {
	name := "softrnic" + strconv.Itoa(index)
	attr := d.QueryDevice()
	files := map[string]string{
		"node_type": "1: CA", "node_guid": guidText(attr.NodeGUID), "sys_image_guid": guidText(attr.SysImageGUID),
		"fw_ver": attr.FWVer, "hca_type": "softrnic", "board_id": "softrnic", "hw_rev": strconv.Itoa(int(attr.HWVer)), "node_desc": name,
		"ports/1/link_layer": "Ethernet", "ports/1/state": "4: ACTIVE", "ports/1/phys_state": "5: LinkUp",
		"ports/1/rate": "10 Gb/sec (4X SDR)", "ports/1/pkeys/0": "0xffff", "ports/1/lid": "0x0", "ports/1/sm_lid": "0x0",
		"ports/1/cap_mask": "0x00010000",
	}
	if e, err := d.QueryGID(1, 0); err == nil {
		files["ports/1/gids/0"] = gidText(e.GID)
		files["ports/1/gid_attrs/types/0"] = "RoCE v2"
	}
	if i, err := net.InterfaceByIndex(d.interfaceIndex); err == nil {
		files["ports/1/gid_attrs/ndevs/0"] = i.Name
		files["device/net/"+i.Name+"/ifindex"] = strconv.Itoa(i.Index)
	}
	all := map[string]string{}
	for file, text := range files {
		all["infiniband/"+name+"/"+file] = text
	}
	uverbs := "infiniband_verbs/uverbs" + strconv.Itoa(index)
	all[uverbs+"/ibdev"], all[uverbs+"/abi_version"], all["infiniband_verbs/abi_version"] = name, "1", "6"
	for file, text := range all {
		path := filepath.Join(dir, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(text+"\n"), 0o644); err != nil {
			return err
		}
	}
	return nil
}

func guidText(guid uint64) string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", guid>>48, guid>>32&0xffff, guid>>16&0xffff, guid&0xffff)
}

func gidText(g verbs.GID) string {
	var words []string
	for i := 0; i < len(g); i += 2 {
		words = append(words, fmt.Sprintf("%02x%02x", g[i], g[i+1]))
	}
	return strings.Join(words, ":")
}

// removePaths removes the directory of this process.
func removePaths() {
	if paths.root != "" {
		os.RemoveAll(paths.root) //nolint:errcheck // the next process tries again
	}
}

// removeStalePaths removes the directories of killed processes of this user.
func removeStalePaths() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), pathsPrefix+"*"))
	for _, dir := range dirs {
		text, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), pathsPrefix), "-")
		pid, err := strconv.Atoi(text)
		if err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			os.RemoveAll(dir) //nolint:errcheck // of another user
		}
	}
}
