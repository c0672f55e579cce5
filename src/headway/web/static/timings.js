/**
 * How long what a user waits for takes, from the key or the click to the frame that shows the answer.
 *
 * The last durations are in `window.headwayTimings`, and in the browser's own performance tools.
 */

const MOST = 200;

/** @type {{name: string, ms: number, words: number}[]} */
const timings = [];
Object.assign(window, { headwayTimings: timings });

/**
 * Start a clock; the function returned stops it with the next frame.
 *
 * @param {string} name
 * @returns {(words: number) => void}
 */
export function timed(name) {
  const start = performance.now();
  return (words) => {
    requestAnimationFrame(() => {
      // A task after the frame's callbacks runs when the frame has been laid out and painted.
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        const { duration } = performance.measure(name, { start, end: performance.now() });
        timings.push({ name, ms: duration, words });
        timings.splice(0, timings.length - MOST);
      };
      port2.postMessage(null);
    });
  };
}
