// Runs a graph for one row. A value is {shape, data}; operations are those of ONNX that
// the exported models consist of, for one row only.
"use strict";

const size = (shape) => shape.reduce((product, length) => product * length, 1);

// f of entries of arrays that are stretched to a common shape, as in NumPy
function each(f, ...values) {
  const axes = Math.max(...values.map((value) => value.shape.length));
  const padded = values.map((value) => Array(axes - value.shape.length).fill(1).concat(value.shape));
  const shape = Array.from({ length: axes }, (_, axis) => Math.max(...padded.map((own) => own[axis])));
  const steps = padded.map((own) => {
    let step = 1;
    return own.map((_, i) => {
      const axis = axes - 1 - i, here = own[axis] === 1 ? 0 : step;
      step *= own[axis];
      return here;
    }).reverse();
  });
  const data = new Array(size(shape)), counts = Array(axes).fill(0), places = values.map(() => 0);
  for (let i = 0; i < data.length; i++) {
    data[i] = f(...values.map((value, k) => value.data[places[k]]));
    for (let axis = axes - 1; axis >= 0; axis--) {
      counts[axis] += 1;
      places.forEach((_, k) => { places[k] += steps[k][axis]; });
      if (counts[axis] < shape[axis]) break;
      places.forEach((_, k) => { places[k] -= steps[k][axis] * shape[axis]; });
      counts[axis] = 0;
    }
  }
  return { shape, data };
}

// f of the entries along an axis, which keeps length 1
function along(f, value, axis) {
  const inner = size(value.shape.slice(axis + 1)), length = value.shape[axis];
  const shape = value.shape.map((own, i) => (i === axis ? 1 : own));
  const data = Array.from({ length: size(shape) }, (_, i) => {
    const first = Math.floor(i / inner) * length * inner + (i % inner);
    return f(Array.from({ length }, (_, k) => value.data[first + k * inner]));
  });
  return { shape, data };
}

function matmul(a, b) {
  const [rows, shared] = a.shape.slice(-2), columns = b.shape[b.shape.length - 1];
  const data = new Array(rows * columns).fill(0);
  for (let i = 0; i < rows; i++) {
    for (let k = 0; k < shared; k++) {
      const factor = a.data[i * shared + k];
      if (factor === 0) continue;
      for (let j = 0; j < columns; j++) data[i * columns + j] += factor * b.data[k * columns + j];
    }
  }
  return { shape: a.shape.slice(0, -1).concat(columns), data };
}

function gather(value, places, axis) {
  const inner = size(value.shape.slice(axis + 1)), outer = size(value.shape.slice(0, axis));
  const data = [];
  for (let o = 0; o < outer; o++) {
    for (const place of places.data) {
      const first = (o * value.shape[axis] + place) * inner;
      for (let i = 0; i < inner; i++) data.push(value.data[first + i]);
    }
  }
  return { shape: [...value.shape.slice(0, axis), ...places.shape, ...value.shape.slice(axis + 1)], data };
}

function concat(values, axis) {
  const shape = values[0].shape.map((own, i) =>
    i === axis ? values.reduce((sum, value) => sum + value.shape[i], 0) : own);
  const outer = size(shape.slice(0, axis)), data = [];
  for (let o = 0; o < outer; o++) {
    for (const value of values) {
      const length = value.data.length / outer;
      for (let i = 0; i < length; i++) data.push(value.data[o * length + i]);
    }
  }
  return { shape, data };
}

function scatterAdd(value, places, more) {
  const data = Array.from(value.data);
  places.data.forEach((place, i) => { data[place] += more.data[i]; });
  return { shape: value.shape, data };
}

const first = (test) => (entries) => entries.reduce((best, own, i) => (test(own, entries[best]) ? i : best), 0);
const OPERATIONS = {
  Add: ([a, b]) => each((x, y) => x + y, a, b),
  Sub: ([a, b]) => each((x, y) => x - y, a, b),
  Mul: ([a, b]) => each((x, y) => x * y, a, b),
  Div: ([a, b]) => each((x, y) => x / y, a, b),
  Max: ([a, b]) => each(Math.max, a, b),
  Min: ([a, b]) => each(Math.min, a, b),
  Pow: ([a, b]) => each(Math.pow, a, b),
  Greater: ([a, b]) => each((x, y) => x > y, a, b),
  Equal: ([a, b]) => each((x, y) => x === y, a, b),
  And: ([a, b]) => each((x, y) => x && y, a, b),
  Where: ([test, a, b]) => each((is, x, y) => (is ? x : y), test, a, b),
  Neg: ([a]) => each((x) => -x, a),
  Abs: ([a]) => each(Math.abs, a),
  Sqrt: ([a]) => each(Math.sqrt, a),
  Exp: ([a]) => each(Math.exp, a),
  Tanh: ([a]) => each(Math.tanh, a),
  Sin: ([a]) => each(Math.sin, a),
  Cast: ([a]) => each(Number, a),
  Identity: ([a]) => a,
  MatMul: ([a, b]) => matmul(a, b),
  ReduceSum: ([a, axes]) => along((entries) => entries.reduce((x, y) => x + y, 0), a, Number(axes.data[0])),
  ReduceMax: ([a], { axes }) => along((entries) => Math.max(...entries), a, axes[0]),
  ReduceMin: ([a], { axes }) => along((entries) => Math.min(...entries), a, axes[0]),
  ArgMax: ([a], { axis }) => along(first((x, y) => x > y), a, axis),
  Gather: ([a, places], { axis }) => gather(a, places, axis),
  Concat: (values, { axis }) => concat(values, axis),
  Unsqueeze: ([a, axes]) => ({ shape: a.shape.toSpliced(Number(axes.data[0]), 0, 1), data: a.data }),
  Squeeze: ([a, axes]) => ({ shape: a.shape.toSpliced(Number(axes.data[0]), 1), data: a.data }),
  ScatterElements: ([a, places, more]) => scatterAdd(a, places, more),
};

// numbers are little-endian, as on every machine that browsers run on
function unpacked({ shape, type, data }) {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const kinds = { float32: Float32Array, float64: Float64Array, int64: BigInt64Array };
  const numbers = new kinds[type](bytes.buffer);
  return { shape, data: type === "int64" ? Array.from(numbers, Number) : numbers };
}

// the outputs of a graph for one row of numbers
function runner(graph) {
  const constants = Object.entries(graph.constants).map(([name, packed]) => [name, unpacked(packed)]);
  return (row) => {
    const known = new Map(constants);
    known.set(graph.input, { shape: [1, row.length], data: row });
    for (const [op, inputs, output, settings] of graph.nodes) {
      known.set(output, OPERATIONS[op](inputs.map((name) => known.get(name)), settings));
    }
    return Object.fromEntries(graph.outputs.map((name) => [name, Array.from(known.get(name).data)]));
  };
}
