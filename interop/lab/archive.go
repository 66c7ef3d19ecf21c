//go:build linux

package lab

import (
	"bufio"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cavaliergopher/cpio"
)

// archiveFolder writes a folder as a cpio archive.
func archiveFolder(w io.Writer, root string) error {
	out := bufio.NewWriterSize(w, 1<<20)
	c := cpio.NewWriter(out)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == root {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		return archiveFile(c, path, name, info)
	})
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	return out.Flush()
}

func archiveFile(c *cpio.Writer, path, name string, info fs.FileInfo) error {
	h := &cpio.Header{Name: name, Mode: cpio.FileMode(info.Mode().Perm()), Links: 1,
		ModTime: info.ModTime()} // Python checks it against its compiled files
	var body []byte
	var err error
	switch {
	case info.IsDir():
		h.Mode |= cpio.TypeDir
	case info.Mode()&fs.ModeSymlink != 0:
		h.Mode |= cpio.TypeSymlink
		if h.Linkname, err = os.Readlink(path); err != nil {
			return err
		}
		body = []byte(h.Linkname)
	case info.Mode().IsRegular():
		h.Mode |= cpio.TypeReg
		if body, err = os.ReadFile(path); err != nil {
			return err
		}
	default:
		return nil // the guest creates devices and sockets itself
	}
	h.Size = int64(len(body))
	if err := c.WriteHeader(h); err != nil {
		return err
	}
	_, err = c.Write(body)
	return err
}

// archiveFiles writes executable files to a cpio archive, keyed by name.
func archiveFiles(w io.Writer, files map[string][]byte) error {
	c := cpio.NewWriter(w)
	for name, body := range files {
		h := &cpio.Header{Name: name, Mode: cpio.TypeReg | 0o755, Size: int64(len(body)), Links: 1}
		if err := c.WriteHeader(h); err != nil {
			return err
		}
		if _, err := c.Write(body); err != nil {
			return err
		}
	}
	return c.Close()
}
