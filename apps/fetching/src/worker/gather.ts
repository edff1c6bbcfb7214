/** Runs work that comes at about the same time as one. */
export type Gather<R, V> = (request: R) => Promise<V>;

/** What a request may wait for others: a statement of its own costs more CPU than a small page's put. */
const GATHER_MS = 2;

/**
 * Requests that come within 2 ms are one call of at most `max`; answers come in the order of their requests. A call that fails
 * fails all of them, and the next is made anew.
 */
export function createGather<R, V>(options: {
  readonly max: number;
  run(requests: readonly R[]): Promise<readonly V[]>;
}): Gather<R, V> {
  let gathering: { readonly requests: R[]; readonly answers: Promise<readonly V[]> } | null = null;

  function open() {
    const requests: R[] = [];
    const answers = new Promise<void>((resolve) => setTimeout(resolve, GATHER_MS)).then(() => {
      if (gathering?.requests === requests) gathering = null;
      return options.run(requests);
    });
    return { requests, answers };
  }

  return async (request) => {
    if (gathering === null || gathering.requests.length >= options.max) gathering = open();
    const { requests, answers } = gathering;
    const place = requests.push(request) - 1;
    const list = await answers;
    if (place >= list.length) throw new Error("a request of a group got no answer");
    return list[place] as V;
  };
}
