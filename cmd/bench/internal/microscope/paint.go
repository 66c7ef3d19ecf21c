package microscope

// Slides are computed with integers only, so that they are the same on every machine.

// hashPoint returns a pseudo-random number for a point of a grid.
func hashPoint(seed uint64, x, y int) uint32 {
	h := seed ^ uint64(uint32(x))*0x9E3779B97F4A7C15 ^ uint64(uint32(y))*0xC2B2AE3D27D4EB4F
	h = (h ^ h>>31) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>29) * 0x94D049BB133111EB
	return uint32(h >> 32)
}

// A noise varies smoothly from 0 to 255 over 2^scale pixels. It caches the corners of the last
// square of the grid.
type noise struct {
	seed   uint64
	scale  int
	x, y   int // position of the cached square
	corner [4]int
	kept   bool
}

func (n *noise) valueAt(x, y int) int {
	one := 1 << n.scale
	gx, gy, fx, fy := x>>n.scale, y>>n.scale, x&(one-1), y&(one-1)
	if !n.kept || gx != n.x || gy != n.y {
		n.x, n.y, n.kept = gx, gy, true
		for i := range n.corner {
			n.corner[i] = int(hashPoint(n.seed+uint64(n.scale), gx+i&1, gy+i>>1) & 255)
		}
	}
	top := n.corner[0]*(one-fx) + n.corner[1]*fx
	bottom := n.corner[2]*(one-fx) + n.corner[3]*fx
	return (top*(one-fy) + bottom*fy) >> (2 * n.scale)
}

// A tissue is the area that is not bare glass.
type tissue struct {
	coarse, fine noise
}

func (t *tissue) containsPoint(x, y int) bool {
	return 2*t.coarse.valueAt(x, y)+t.fine.valueAt(x, y) > 300
}

// paintLevel paints level 0.
func paintLevel(spec Spec) *raster {
	r := newRaster(spec.Width, spec.Height)
	where := tissue{noise{seed: spec.Seed, scale: 8}, noise{seed: spec.Seed, scale: 6}}
	fibres := noise{seed: spec.Seed + 1, scale: 4}
	for y := range r.height {
		row := r.pixelRow(y)
		for x := range r.width {
			p := row[3*x : 3*x+3]
			grain := int(hashPoint(spec.Seed, x, y) & 7)
			if !where.containsPoint(x, y) {
				p[0], p[1], p[2] = byte(236+grain), byte(234+grain), byte(238+grain)
				continue
			}
			fibre := fibres.valueAt(x+y/2, y-x/3) / 3 // 0 to 85
			p[0], p[1], p[2] = byte(228-fibre/3+grain), byte(190-fibre+grain), byte(212-fibre/2+grain)
		}
	}
	const cell = 22 // distance of nuclei in pixels
	for cy := range ceilDiv(r.height, cell) {
		for cx := range ceilDiv(r.width, cell) {
			h := hashPoint(spec.Seed+2, cx, cy)
			x, y, radius := cx*cell+int(h%cell), cy*cell+int(h>>8%cell), 3+int(h>>16%6)
			if h>>24 < 170 && where.containsPoint(x, y) {
				r.drawNucleus(x, y, radius, int(h>>28))
			}
		}
	}
	return r
}

// drawNucleus draws a dark disc with a darker rim.
func (r *raster) drawNucleus(x0, y0, radius, tint int) {
	for y := max(0, y0-radius); y <= min(r.height-1, y0+radius); y++ {
		row := r.pixelRow(y)
		for x := max(0, x0-radius); x <= min(r.width-1, x0+radius); x++ {
			d := (x-x0)*(x-x0) + (y-y0)*(y-y0)
			if d > radius*radius {
				continue
			}
			dark := 2*tint + 40*d/(radius*radius)
			p := row[3*x : 3*x+3]
			p[0], p[1], p[2] = byte(120-dark+int(p[0])&7), byte(90-dark+int(p[1])&7), byte(165-dark+int(p[2])&7)
		}
	}
}
