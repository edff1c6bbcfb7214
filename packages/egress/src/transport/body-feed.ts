import type { BodyStage } from "./body-stage.ts";
import type { Connection } from "./connection.ts";

/** Brings a body's chunks from a connection into a stage, at the stage's pace. */
export type BodyFeed = {
  add(chunk: Buffer): void;
  /** The last chunk was added. */
  end(): void;
  /** Nothing is fed, timed or reported from here on. */
  stop(): void;
};

/** One of the three is called, once, unless the feed is stopped before. */
export type BodyFeedEvents = {
  /** The stage has taken all of it. */
  onDone(): void;
  /** Nothing came for as long as the idle timeout, while the stage was ready to take more. */
  onIdle(): void;
  /** What the stage threw. */
  onError(error: unknown): void;
};

/** A feed into `stage`. While the stage takes its time, the connection is held and nobody's silence is timed. */
export function createBodyFeed(
  stage: BodyStage,
  connection: Connection,
  idleTimeoutMs: number,
  events: BodyFeedEvents,
): BodyFeed {
  /** Chunks that one read of the socket brought behind one that is still being taken: at most what it buffers. */
  const backlog: Buffer[] = [];
  let timer: NodeJS.Timeout | undefined;
  let added = 0;
  let isWaiting = false;
  let hasEnded = false;
  let isStopped = false;

  const stop = (): void => {
    isStopped = true;
    clearTimeout(timer);
  };
  const onError = (error: unknown): void => {
    if (isStopped) return;
    stop();
    events.onError(error);
  };
  const armIdleTimer = (): void => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      // After a long turn of the loop timers fire before sockets are read: what is there by now still counts.
      const before = added;
      setImmediate(() => {
        if (isStopped || isWaiting || hasEnded) return;
        if (added === before) {
          stop();
          events.onIdle();
        } else armIdleTimer();
      });
    }, idleTimeoutMs);
  };
  const feed = (chunk: Buffer): void => {
    try {
      const taken = stage.write(chunk);
      if (taken === undefined) {
        timer?.refresh();
        return;
      }
      clearTimeout(timer);
      connection.hold();
      isWaiting = true;
      taken.then(() => {
        isWaiting = false;
        goOn();
      }, onError);
    } catch (error) {
      onError(error);
    }
  };
  const goOn = (): void => {
    while (!isStopped && !isWaiting) {
      const chunk = backlog.shift();
      if (chunk !== undefined) {
        feed(chunk);
        continue;
      }
      if (hasEnded) complete();
      else {
        armIdleTimer();
        connection.release();
      }
      return;
    }
  };
  const complete = (): void => {
    connection.release();
    const done = (): void => {
      if (isStopped) return;
      stop();
      events.onDone();
    };
    try {
      const ended = stage.end();
      if (ended === undefined) done();
      else ended.then(done, onError);
    } catch (error) {
      onError(error);
    }
  };

  armIdleTimer();
  return {
    add(chunk) {
      added += 1;
      if (isWaiting) backlog.push(chunk);
      else feed(chunk);
    },
    end() {
      hasEnded = true;
      clearTimeout(timer);
      if (!isWaiting) complete();
    },
    stop,
  };
}
