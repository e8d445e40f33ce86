/** What the studio's elements say, in English and Chinese. Pure; `{name}` marks a value. */

export const TEXTS = {
  en: {
    starting: "Getting ready",
    next: "Waiting: one run is ahead of this one",
    waiting: "Waiting: {ahead} runs are ahead of this one",
    paused: "Paused",
    stopped: "Stopped before the first row",
    failed: "Failed: {error}",
    gone: "This run is no longer known: the server was started again, or the run ended long ago. "
      + "Finished pictures are in the history.",
    lost: "The server does not answer; trying again",
    secondsLeft: "about {seconds} s left",
    minutesLeft: "about {minutes} min left",
  },
  zh: {
    starting: "正在准备",
    next: "等待中：前面还有 1 个任务",
    waiting: "等待中：前面还有 {ahead} 个任务",
    paused: "已暂停",
    stopped: "在第一行之前已停止",
    failed: "失败：{error}",
    gone: "此任务已不存在：服务器已重新启动，或任务早已结束。已完成的图像在历史记录中。",
    lost: "服务器没有响应，正在重试",
    secondsLeft: "约剩 {seconds} 秒",
    minutesLeft: "约剩 {minutes} 分钟",
  },
};
