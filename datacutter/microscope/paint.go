package microscope

// What a slide shows is made of integers only, so that it is the same on every
// machine.

// hash is a number that looks random for a point of a grid.
func hash(seed uint64, x, y int) uint32 {
	h := seed ^ uint64(uint32(x))*0x9E3779B97F4A7C15 ^ uint64(uint32(y))*0xC2B2AE3D27D4EB4F
	h = (h ^ h>>31) * 0xBF58476D1CE4E5B9
	h = (h ^ h>>29) * 0x94D049BB133111EB
	return uint32(h >> 32)
}

// noise varies smoothly from 0 to 255 over 2^scale pixels.
func noise(seed uint64, scale, x, y int) int {
	one := 1 << scale
	gx, gy, fx, fy := x>>scale, y>>scale, x&(one-1), y&(one-1)
	corner := func(dx, dy int) int { return int(hash(seed+uint64(scale), gx+dx, gy+dy) & 255) }
	top := corner(0, 0)*(one-fx) + corner(1, 0)*fx
	bottom := corner(0, 1)*(one-fx) + corner(1, 1)*fx
	return (top*(one-fy) + bottom*fy) >> (2 * scale)
}

// isTissue is the rest glass?
func isTissue(seed uint64, x, y int) bool {
	return 2*noise(seed, 8, x, y)+noise(seed, 6, x, y) > 300
}

// paint makes level 0.
func paint(spec Spec) *raster {
	r := newRaster(spec.Width, spec.Height)
	for y := range r.height {
		row := r.row(y)
		for x := range r.width {
			p := row[3*x : 3*x+3]
			grain := int(hash(spec.Seed, x, y) & 7)
			if !isTissue(spec.Seed, x, y) {
				p[0], p[1], p[2] = byte(236+grain), byte(234+grain), byte(238+grain)
				continue
			}
			fibre := noise(spec.Seed+1, 4, x+y/2, y-x/3) / 3 // 0 to 85
			p[0], p[1], p[2] = byte(228-fibre/3+grain), byte(190-fibre+grain), byte(212-fibre/2+grain)
		}
	}
	const cell = 22 // pixels from nucleus to nucleus
	for cy := range ceil(r.height, cell) {
		for cx := range ceil(r.width, cell) {
			h := hash(spec.Seed+2, cx, cy)
			x, y, radius := cx*cell+int(h%cell), cy*cell+int(h>>8%cell), 3+int(h>>16%6)
			if h>>24 < 170 && isTissue(spec.Seed, x, y) {
				r.nucleus(x, y, radius, int(h>>28))
			}
		}
	}
	return r
}

// nucleus draws a dark disc with a darker rim.
func (r *raster) nucleus(x0, y0, radius, tint int) {
	for y := max(0, y0-radius); y <= min(r.height-1, y0+radius); y++ {
		row := r.row(y)
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
