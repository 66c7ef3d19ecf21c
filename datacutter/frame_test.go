package datacutter

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// The comment of kind documents the format.
func TestFrameBytes(t *testing.T) {
	require.Equal(t, "dc03000000000005"+"68656c6c6f", hex.EncodeToString(appendFrame(nil, kindUnit, []byte("hello"))))
	require.Equal(t, "dc04000000000014"+"00000002"+"0000000000000003"+"0000000000000c00", hex.EncodeToString(appendEnd(nil, 2, Counts{3, 3072})))
	require.Equal(t, "dc05000000000000", hex.EncodeToString(ackFrame[:]))
	h := hello{digest: digest{0: 0xAB, 31: 0xCD}, slot: slot{stream: 1, group: 2, from: 3, to: 4}}
	require.Equal(t, "dc01000000000030"+"ab"+hex.EncodeToString(make([]byte, 30))+"cd"+"00000001"+"00000002"+"00000003"+"00000004",
		hex.EncodeToString(h.appendTo(nil)))
}

func TestInvalidFrameLengths(t *testing.T) {
	const unitSize = 1000
	for _, c := range []struct {
		name   string
		header string // hexadecimal
		ok     bool
	}{
		{"unit", "dc030000000003e8", true},
		{"empty unit", "dc03000000000000", true},
		{"unit too long by one", "dc030000000003e9", false},
		{"unit of 4 GiB", "dc030000ffffffff", false},
		{"short hello", "dc0100000000002f", false},
		{"long welcome", "dc02000000000001", false},
		{"short end", "dc04000000000013", false},
		{"long acknowledgement", "dc05000000000001", false},
		{"long bye", "dc06000000000001", false},
		{"abort", "dc07000000000400", true},
		{"long abort", "dc07000000000401", false},
		{"kind 0", "dc00000000000000", false},
		{"kind 8", "dc08000000000000", false},
		{"reserved", "dc03000100000001", false},
		{"magic", "dd03000000000001", false},
	} {
		header, err := hex.DecodeString(c.header)
		require.NoError(t, err)
		// No payload follows: a reader that trusted the length would block.
		_, err = newFrameReader(bytes.NewReader(header), unitSize).nextFrame()
		switch {
		case !c.ok:
			require.ErrorIs(t, err, ErrFrame, c.name)
		case header[7] == 0 && header[6] == 0:
			require.NoError(t, err, c.name)
		default:
			require.ErrorIs(t, err, io.ErrUnexpectedEOF, c.name)
		}
	}
}

// slowFrames returns a reader of frames that delivers single bytes.
func slowFrames(b []byte, unitSize int) (frames [][]byte, err error) {
	limits := map[byte][2]int{1: {48, 48}, 2: {0, 0}, 3: {0, unitSize}, 4: {20, 20}, 5: {0, 0}, 6: {0, 0}, 7: {0, 1024}}
	for len(b) > 0 {
		if len(b) < 8 {
			return frames, io.ErrUnexpectedEOF
		}
		limit, known := limits[b[1]]
		n := int64(binary.BigEndian.Uint32(b[4:]))
		if b[0] != 0xDC || b[2] != 0 || b[3] != 0 || !known || n < int64(limit[0]) || n > int64(limit[1]) {
			return frames, ErrFrame
		}
		if int64(len(b)-8) < n {
			return frames, io.ErrUnexpectedEOF
		}
		frames = append(frames, b[:8+n])
		b = b[8+n:]
	}
	return frames, io.EOF
}

func FuzzFrames(f *testing.F) {
	f.Add(slices.Concat(appendFrame(nil, kindUnit, []byte("abc")), appendEnd(nil, 0, Counts{1, 3}), appendFrame(nil, kindBye, nil)), uint16(3))
	f.Add(appendFrame(nil, kindAbort, []byte("why")), uint16(0))
	f.Add(hello{}.appendTo(nil), uint16(1))
	f.Add([]byte{0xDC, 3, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF, 1, 2, 3}, uint16(65535))
	f.Fuzz(func(t *testing.T, b []byte, unitSize uint16) {
		want, end := slowFrames(b, int(unitSize))
		for _, from := range []io.Reader{bytes.NewReader(b), iotest.OneByteReader(bytes.NewReader(b))} {
			r := newFrameReader(from, int(unitSize))
			for _, w := range want {
				f, err := r.nextFrame()
				require.NoError(t, err)
				require.Equal(t, w, appendFrame(nil, f.kind, f.payload))
			}
			_, err := r.nextFrame()
			require.ErrorIs(t, err, end)
		}
	})
}

func FuzzHello(f *testing.F) {
	f.Add(hello{digest: digest{1, 2, 3}, slot: slot{1, 2, 3, 4}}.appendTo(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < frameHeader+helloLen {
			return
		}
		b = b[:frameHeader+helloLen]
		h, err := parseHello(b)
		if err != nil {
			require.ErrorIs(t, err, ErrFrame)
			return
		}
		require.Equal(t, b, h.appendTo(nil))
	})
}

func TestFrameReaderWaitsOutDeadlines(t *testing.T) {
	// A read that times out within a frame can be resumed.
	whole := appendFrame(nil, kindUnit, []byte("abc"))
	late := errors.New("late")
	r := newFrameReader(io.MultiReader(bytes.NewReader(whole[:9]), iotest.ErrReader(late)), 3)
	_, err := r.nextFrame()
	require.ErrorIs(t, err, late)
	_, err = r.nextFrame()
	require.ErrorIs(t, err, late)
}
